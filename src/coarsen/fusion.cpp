// Fusion: ops that an inference backend runs as one kernel become one op before placement.
//
// The rule table, with op types as ONNX and OpenVINO spell them:
//   convolution  (+ bias) (+ batch normalisation) (+ add) (+ activation)
//   matrix product (+ add) (+ activation)
//   elementwise ops in a chain
//   softmax, layer normalisation, GELU, SiLU and their like where the graph spells them out,
//     with the elementwise ops and reductions that feed only them
// A producer joins only where nobody outside the set reads it, so every set has a single exit,
// which all members lead to: contracting such a set makes no cycle. All members run on the same
// kinds.
//
// Zhang et al.: Moirai: towards optimal placement for distributed inference on heterogeneous
// devices (graph coarsening by operator fusion). O(ops + edges).

#include <algorithm>
#include <cctype>
#include <string>
#include <unordered_map>
#include <vector>

#include "coarsen/coarsening.h"

namespace placewright {
namespace {

enum class OpClass {
  other,
  convolution,
  product,
  add,
  batch_normalisation,
  activation,
  elementwise,
  reduction,
};

// Lower-case letters and digits only: "Batch_Norm" and "BatchNorm" are one.
std::string plain_name(const std::string& type) {
  std::string name;
  for (const char letter : type) {
    if (std::isalnum(static_cast<unsigned char>(letter)) != 0) {
      name += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    }
  }
  return name;
}

const std::unordered_map<std::string, OpClass>& class_table() {
  static const std::unordered_map<std::string, OpClass> table = [] {
    std::unordered_map<std::string, OpClass> classes;
    const auto put = [&](OpClass op_class, std::initializer_list<const char*> names) {
      for (const char* name : names) classes.emplace(name, op_class);
    };
    put(OpClass::convolution,
        {"conv", "conv1d", "conv2d", "conv3d", "convolution", "groupconvolution", "convtranspose",
         "convolutionbackpropdata", "groupconvolutionbackpropdata", "convinteger", "qlinearconv",
         "binaryconvolution", "deformableconvolution", "depthwiseconv2d"});
    put(OpClass::product, {"matmul", "gemm", "linear", "fullyconnected", "dense", "matmulinteger",
                           "qlinearmatmul", "einsum"});
    put(OpClass::add, {"add", "bias", "biasadd", "sum"});
    put(OpClass::batch_normalisation,
        {"batchnorm", "batchnormalization", "batchnorminference", "fusedbatchnorm"});
    put(OpClass::activation, {"relu",
                              "relu6",
                              "leakyrelu",
                              "prelu",
                              "clip",
                              "clamp",
                              "silu",
                              "swish",
                              "hswish",
                              "hardswish",
                              "sigmoid",
                              "hsigmoid",
                              "tanh",
                              "hardsigmoid",
                              "gelu",
                              "elu",
                              "selu",
                              "celu",
                              "mish",
                              "softplus",
                              "softsign",
                              "fastgelu",
                              "thresholdedrelu",
                              "quickgelu"});
    put(OpClass::elementwise,
        {"mul",        "multiply", "sub",      "subtract", "div",     "divide",
         "pow",        "power",    "sqrt",     "rsqrt",    "exp",     "log",
         "abs",        "neg",      "negative", "erf",      "square",  "squareddifference",
         "reciprocal", "cast",     "convert",  "min",      "minimum", "max",
         "maximum",    "floor",    "ceil",     "ceiling",  "round",   "sign",
         "identity",   "dropout",  "where",    "select",   "not",     "equal",
         "greater",    "less"});
    put(OpClass::reduction, {"reducemean", "reducesum", "reducemax", "reducemin", "reducel2",
                             "reducesumsquare", "mean"});
    return classes;
  }();
  return table;
}

OpClass class_of(const std::string& name) {
  const auto found = class_table().find(name);
  return found == class_table().end() ? OpClass::other : found->second;
}

// What may stand inside a spelled-out pattern.
bool is_light(OpClass op_class) {
  return op_class == OpClass::add || op_class == OpClass::activation ||
         op_class == OpClass::elementwise || op_class == OpClass::reduction;
}

enum class Head {
  none,
  convolution,
  product,
  light,
  pattern,
  activation_pattern,
  activated_kernel,  // a convolution or product with a spelled-out activation
};

// A set while it grows.
struct FusedSet {
  Head head = Head::none;
  int stage = 0;  // how far along its rule
  OpId exit;
};

class Fusion {
 public:
  explicit Fusion(const Problem& problem)
      : problem_(problem),
        names_(problem.op_count()),
        classes_(problem.op_count()),
        set_of_(problem.op_count()) {
    for (const OpId op : problem.ops()) {
      names_[op] = plain_name(problem.op(op).type);
      classes_[op] = class_of(names_[op]);
    }
  }

  Partition run() {
    for (const OpId op : problem_.topological_order()) match_pattern(op);
    const auto order = problem_.topological_order();
    for (auto op = order.rbegin(); op != order.rend(); ++op) join_pattern_behind(*op);
    for (const OpId op : order) join_producer(op);
    Partition partition(problem_.op_count());
    for (const OpId op : problem_.ops()) partition[op] = set_of_[op];
    return partition;
  }

 private:
  static constexpr std::size_t kLargestPattern = 14;

  [[nodiscard]] bool grouped(OpId op) const { return set_of_[op].valid(); }

  [[nodiscard]] bool same_support(OpId a, OpId b) const {
    const Op& left = problem_.op(a);
    const Op& right = problem_.op(b);
    if (left.model != right.model || left.backward != right.backward ||
        left.pinned_to != right.pinned_to) {
      return false;
    }
    for (std::size_t kind = 0; kind < left.time.size(); ++kind) {
      if ((left.time[kind] == kUnsupported) != (right.time[kind] == kUnsupported)) return false;
    }
    return true;
  }

  CoarseSet open_set(Head head, OpId exit) {
    sets_.push_back({head, 0, exit});
    return CoarseSet{sets_.size() - 1};
  }

  // The light ops between a fork and the op at which all its branches meet again, that op last;
  // empty if there is no such op nearby.
  [[nodiscard]] std::vector<OpId> diamond(OpId fork) const {
    std::vector<OpId> inside;
    const auto forks = problem_.successors(fork);
    std::vector<OpId> open(forks.begin(), forks.end());
    while (inside.size() < kLargestPattern) {
      const auto next = std::ranges::min_element(
          open, {}, [&](OpId op) { return problem_.topological_rank(op); });
      const OpId op = *next;
      if (grouped(op) || !is_light(classes_[op]) || !same_support(forks[0], op)) return {};
      inside.push_back(op);
      if (open.size() == 1) return inside;
      open.erase(next);
      if (problem_.successors(op).empty()) return {};
      for (const OpId after : problem_.successors(op)) {
        if (std::ranges::find(open, after) == open.end()) open.push_back(after);
      }
    }
    return {};
  }

  [[nodiscard]] Head pattern_of(const std::vector<OpId>& ops, OpId fork) const {
    const auto has = [&](std::initializer_list<const char*> names) {
      return std::ranges::any_of(names, [&](const char* name) {
        return names_[fork] == name ||
               std::ranges::any_of(ops, [&](OpId op) { return names_[op] == name; });
      });
    };
    const bool scaled = has({"mul", "multiply"});
    const bool divided = has({"div", "divide", "reciprocal"}) || scaled;
    if (has({"erf", "tanh", "sigmoid", "hardsigmoid", "hsigmoid", "softplus", "clip", "clamp"}) &&
        scaled) {
      return Head::activation_pattern;
    }
    if (has({"exp"}) && has({"reducesum"}) && divided) return Head::pattern;
    if (has({"reducemean"}) && has({"sqrt", "rsqrt", "pow", "power"}) && divided) {
      return Head::pattern;
    }
    return Head::none;
  }

  void match_pattern(OpId fork) {
    if (grouped(fork) || problem_.successors(fork).size() < 2) return;
    const std::vector<OpId> inside = diamond(fork);
    if (inside.empty()) return;
    const Head head = pattern_of(inside, fork);
    if (head == Head::none) return;
    const CoarseSet set = open_set(head, inside.back());
    for (const OpId op : inside) set_of_[op] = set;
    if (same_support(fork, inside.front())) join_pattern(fork, set);
  }

  // What comes before a pattern belongs to it where it is light or what the activation follows.
  void join_pattern(OpId op, CoarseSet set) {
    if (is_light(classes_[op])) {
      set_of_[op] = set;
    } else if (sets_[set.index()].head == Head::activation_pattern && starts_kernel(op)) {
      set_of_[op] = set;
      close(set);
    }
  }

  [[nodiscard]] bool starts_kernel(OpId op) const {
    return classes_[op] == OpClass::convolution || classes_[op] == OpClass::product ||
           classes_[op] == OpClass::batch_normalisation;
  }

  void close(CoarseSet set) { sets_[set.index()].head = Head::activated_kernel; }

  // An op that feeds one pattern and nothing else.
  void join_pattern_behind(OpId op) {
    if (grouped(op) || problem_.successors(op).empty()) return;
    const CoarseSet set = set_of_[problem_.successors(op)[0]];
    if (!set.valid()) return;
    const Head head = sets_[set.index()].head;
    if (head != Head::pattern && head != Head::activation_pattern) return;
    const bool all = std::ranges::all_of(problem_.successors(op),
                                         [&](OpId after) { return set_of_[after] == set; });
    if (all && same_support(op, sets_[set.index()].exit)) join_pattern(op, set);
  }

  [[nodiscard]] Head head_of(OpId op) const {
    switch (classes_[op]) {
      case OpClass::convolution:
        return Head::convolution;
      case OpClass::product:
        return Head::product;
      case OpClass::add:
      case OpClass::activation:
      case OpClass::elementwise:
        return Head::light;
      case OpClass::batch_normalisation:
      case OpClass::reduction:
      case OpClass::other:
        break;
    }
    return Head::none;
  }

  // The stage that the set reaches by taking an op of this class; 0: it does not take it.
  static int next_stage(const FusedSet& set, OpClass op_class) {
    const bool simple = op_class == OpClass::add || op_class == OpClass::activation ||
                        op_class == OpClass::elementwise;
    switch (set.head) {
      case Head::convolution:
        if (op_class == OpClass::add) return set.stage < 1 ? 1 : set.stage < 3 ? 3 : 0;
        if (op_class == OpClass::batch_normalisation) return set.stage < 2 ? 2 : 0;
        if (op_class == OpClass::activation) return set.stage < 4 ? 4 : 0;
        return 0;
      case Head::product:
        if (op_class == OpClass::add) return set.stage < 1 ? 1 : 0;
        if (op_class == OpClass::activation) return set.stage < 2 ? 2 : 0;
        return 0;
      case Head::light:
      case Head::pattern:
      case Head::activation_pattern:
        return simple ? 1 : 0;
      case Head::activated_kernel:  // GELU ends with a factor of a half
        return op_class == OpClass::elementwise && set.stage < 1 ? 1 : 0;
      case Head::none:
        break;
    }
    return 0;
  }

  void join_producer(OpId op) {
    if (grouped(op)) return;
    for (const OpId before : problem_.predecessors(op)) {
      const CoarseSet candidate = set_of_[before];
      FusedSet& set = sets_[candidate.index()];
      if (set.exit != before || problem_.successors(before).size() != 1) continue;
      const int stage = next_stage(set, classes_[op]);
      if (stage == 0 || !same_support(before, op)) continue;
      set.stage = stage;
      set.exit = op;
      set_of_[op] = candidate;
      return;
    }
    set_of_[op] = open_set(head_of(op), op);
  }

  const Problem& problem_;
  Table<OpId, std::string> names_;
  Table<OpId, OpClass> classes_;
  Table<OpId, CoarseSet> set_of_;
  std::vector<FusedSet> sets_;
};

}  // namespace

Partition fusion_partition(const Problem& problem) {
  return Fusion(problem).run();
}

}  // namespace placewright
