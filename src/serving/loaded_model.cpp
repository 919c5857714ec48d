#include "serving/loaded_model.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "backends/target_devices.h"
#include "serving/measured_forms.h"

namespace placewright {
namespace {

// Somebody else's bytes, as a buffer that a backend reads.
class LentBuffer final : public Buffer {
 public:
  void lend(Bytes bytes) { bytes_ = bytes; }
  [[nodiscard]] const MemorySpace& space() const override { return host_; }
  [[nodiscard]] std::size_t size() const override { return bytes_.size(); }
  // Backends only read an input.
  [[nodiscard]] std::span<std::byte> bytes() const override {
    return {const_cast<std::byte*>(bytes_.data()), bytes_.size()};
  }

 private:
  Bytes bytes_;
  MemorySpace host_;
};

OpGroup all_ops(const ModelGraph& graph) {
  OpGroup ops(graph.ops.size());
  std::iota(ops.begin(), ops.end(), std::size_t{0});
  return ops;
}

}  // namespace

// The model in parts that run one after the other, for `batch` requests at once.
class LoadedModel::Form {
 public:
  Form(std::shared_ptr<const NeuralModel> model, const std::vector<OpGroup>& parts,
       const Target& target, std::size_t batch)
      : model_(std::move(model)) {
    for (const GraphInput& input : model_->graph().inputs) {
      inputs_.push_back(std::make_unique<LentBuffer>());
      if (batch == 1) continue;
      const HostBuffer& own = joined_.emplace_back(static_cast<std::size_t>(input.type.bytes));
      inputs_.back()->lend(own.bytes());
    }
    for (const OpGroup& ops : parts) add_piece(ops, target);
    if (batch > 1) bind();
  }

  void take(const std::vector<const RequestInputs*>& requests) {
    if (joined_.empty()) {
      for (std::size_t i = 0; i < inputs_.size(); ++i) inputs_[i]->lend((*requests.front())[i]);
      return bind();
    }
    for (std::size_t i = 0; i < inputs_.size(); ++i) {
      std::byte* place = joined_[i].data();
      for (const RequestInputs* request : requests) {
        place = std::ranges::copy((*request)[i], place).out;
      }
    }
  }
  void run(std::size_t piece) { pieces_[piece].request->run(); }

  // Of all requests of a batch together.
  [[nodiscard]] std::vector<Bytes> outputs() const {
    std::vector<Bytes> outputs;
    for (const GraphOutput& output : model_->graph().outputs) {
      if (output.tensor.is_model_input()) {
        outputs.push_back(inputs_[output.tensor.port]->bytes());
      } else {
        const Origin& origin = origin_.at(output.tensor);
        outputs.push_back(pieces_[origin.piece].request->output(origin.output).bytes());
      }
    }
    return outputs;
  }

 private:
  // A part with its request, and which of its inputs are the model's.
  struct Piece {
    std::unique_ptr<CompiledPart> part;
    std::unique_ptr<Request> request;
    std::vector<std::pair<std::size_t, std::size_t>> inputs;  // of the part, of the model
  };
  // Where a tensor comes from.
  struct Origin {
    std::size_t piece = 0;
    std::size_t output = 0;
  };

  void add_piece(const OpGroup& ops, const Target& target) {
    Piece piece;
    piece.part = model_->compile(ops, compile_options(target));
    piece.request = piece.part->request();
    for (std::size_t i = 0; i < piece.part->inputs().size(); ++i) {
      const TensorKey& tensor = piece.part->inputs()[i];
      if (tensor.is_model_input()) {
        piece.inputs.emplace_back(i, tensor.port);
      } else {
        const Origin& origin = origin_.at(tensor);
        piece.request->bind_input(i, pieces_[origin.piece].request->output(origin.output));
      }
    }
    for (std::size_t o = 0; o < piece.part->outputs().size(); ++o) {
      origin_.try_emplace(piece.part->outputs()[o], Origin{pieces_.size(), o});
    }
    pieces_.push_back(std::move(piece));
  }
  void bind() {
    for (Piece& piece : pieces_) {
      for (const auto& [own, of_model] : piece.inputs) {
        piece.request->bind_input(own, *inputs_[of_model]);
      }
    }
  }

  std::shared_ptr<const NeuralModel> model_;
  std::vector<HostBuffer> joined_;  // of a batch, by input
  std::vector<std::unique_ptr<LentBuffer>> inputs_;
  std::vector<Piece> pieces_;
  std::map<TensorKey, Origin> origin_;
};

LoadedModel::LoadedModel(std::shared_ptr<const NeuralModel> model, const Target& target,
                         ModelCuts cuts, const BatchedModels& batched)
    : model_(std::move(model)), cuts_(std::move(cuts)) {
  const std::vector<OpGroup> uncut{all_ops(graph())};
  whole_ = std::make_unique<Form>(model_, uncut, target, 1);
  if (cuts_.segments.size() > 1) {
    cut_ = std::make_unique<Form>(model_, cuts_.segments, target, 1);
  }
  if (cuts_.on_half > 0) {
    for (const Target& half : halves_of(target)) {
      halves_.push_back(std::make_unique<Form>(model_, uncut, half, 1));
    }
  }
  for (const auto& [size, together] : batched) {
    const std::vector<OpGroup> all{all_ops(together->graph())};
    batches_[size] = std::make_unique<Form>(together, all, target, size);
  }
}

LoadedModel::~LoadedModel() = default;

LoadedModel::Form& LoadedModel::form_of(const Step& step) const {
  if (step.requests.size() > 1) return *batches_.at(step.requests.size());
  if (step.half) return *halves_.at(*step.half);
  return step.segment ? *cut_ : *whole_;
}

void LoadedModel::run(const Step& step, const std::vector<const RequestInputs*>& inputs) {
  Form& form = form_of(step);
  if (!inputs.empty()) form.take(inputs);
  form.run(step.segment.value_or(0));
}

std::vector<Bytes> LoadedModel::outputs(const Step& step, std::size_t place) const {
  std::vector<Bytes> outputs = form_of(step).outputs();
  const std::size_t count = step.requests.size();
  if (count == 1) return outputs;
  for (Bytes& output : outputs) {
    const std::size_t each = output.size() / count;
    output = output.subspan(place * each, each);
  }
  return outputs;
}

}  // namespace placewright
