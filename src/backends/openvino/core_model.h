// NeuralModel on an ov::Model: the graph without its constants, and parts of it as models of their
// own.

#pragma once

#include <set>
#include <unordered_map>

#include <openvino/openvino.hpp>

#include "backends/runtime.h"

namespace placewright::openvino {

class CoreModel final : public NeuralModel {
 public:
  // Renames nodes where names are not unique, so that counters lead back to one op.
  CoreModel(ov::Core& core, std::shared_ptr<ov::Model> model, Precision precision);

  [[nodiscard]] const ModelGraph& graph() const override { return graph_; }
  [[nodiscard]] std::unique_ptr<CompiledPart> compile(std::span<const std::size_t> ops,
                                                      const CompileOptions& options) const override;
  [[nodiscard]] std::vector<std::size_t> unsupported(const std::string& device) const override;
  [[nodiscard]] SerialisedModel serialised() const override;
  [[nodiscard]] SerialisedPart serialised_part(std::span<const std::size_t> ops) const override;

 private:
  struct Part {
    std::shared_ptr<ov::Model> model;
    std::vector<TensorKey> inputs;
    std::vector<TensorKey> outputs;
  };

  void find_constants();
  void name_ops();
  void build_graph();
  void add_op(const std::shared_ptr<ov::Node>& node);
  void add_weights();
  [[nodiscard]] TensorKey key_of(const ov::Output<ov::Node>& tensor) const;
  [[nodiscard]] Part part(std::span<const std::size_t> ops,
                          const std::set<TensorKey>& channels_last) const;
  [[nodiscard]] Part whole() const;

  ov::Core& core_;
  std::shared_ptr<ov::Model> model_;
  Precision precision_;
  ModelGraph graph_;
  std::vector<std::shared_ptr<ov::Node>> nodes_;              // by op
  std::unordered_map<const ov::Node*, std::size_t> numbers_;  // ops, and inputs by parameter
  std::unordered_map<const ov::Node*, bool> constant_;
  std::set<TensorKey> images_;  // that cross borders with their channels last (borders.h)
};

}  // namespace placewright::openvino
