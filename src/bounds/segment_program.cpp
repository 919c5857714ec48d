#include "bounds/segment_program.h"

#include <algorithm>
#include <span>
#include <vector>

#include "bounds/rounding.h"
#include "problem/lanes.h"
#include "problem/move_time.h"
#include "solvers/linear_program.h"

namespace placewright {
namespace {

using solvers::LinearTerm;

constexpr std::size_t kThresholds = 4;  // of heads and of tails, for windows

// A program to minimise one variable over a box, which remembers its rows.
class BoxProgram {
 public:
  int add_variable(double most, double cost) {
    most_.push_back(most);
    cost_.push_back(cost);
    return program_.add_variable(0, most, cost);
  }
  void add_equal(double value, std::vector<LinearTerm> terms) { add(value, value, terms); }
  void add_at_most(double value, std::vector<LinearTerm> terms) {
    add(-solvers::kUnbounded, value, terms);
  }

  // What the prices of the rows prove, whatever they are: for any x in the box that keeps the rows,
  // cost'x >= sum of price x side + sum of the least of (cost - prices'A) x.
  [[nodiscard]] double bound(const SegmentProgramLimits& limits) {
    const auto result = program_.solve({.time_seconds = limits.most_seconds, .stop = limits.stop});
    if (result.status != solvers::LinearStatus::optimal) return 0;
    std::vector<double> reduced = cost_;
    double total = 0;
    for (std::size_t i = 0; i < rows_.size(); ++i) {
      double price = result.row_duals[i];
      if (rows_[i].lower == -solvers::kUnbounded) price = std::min(price, 0.0);
      if (price == 0) continue;
      total += price * rows_[i].upper;
      for (const LinearTerm& term : rows_[i].terms) {
        reduced[static_cast<std::size_t>(term.variable)] -= price * term.coefficient;
      }
    }
    for (std::size_t j = 0; j < reduced.size(); ++j) total += std::min(0.0, reduced[j]) * most_[j];
    return safe_search(std::max(0.0, total));
  }

 private:
  struct Row {
    double lower;
    double upper;
    std::vector<LinearTerm> terms;
  };

  void add(double lower, double upper, std::vector<LinearTerm>& terms) {
    program_.add_row(lower, upper, terms);
    rows_.push_back({lower, upper, std::move(terms)});
  }

  solvers::LinearProgram program_;
  std::vector<Row> rows_;
  std::vector<double> most_;
  std::vector<double> cost_;
};

// Something that takes a device or a port for a while if its variable is 1.
struct Activity {
  int variable;
  double length;
  double head;
  double tail;
};

class SegmentProgram {
 public:
  SegmentProgram(const Problem& problem, const SegmentPaths& paths, const SegmentPassage& passage)
      : problem_(problem),
        paths_(paths),
        ops_(paths.segment().ops),
        entry_(passage.entry),
        exit_(passage.exit),
        enough_(passage.enough),
        at_least_(std::max(passage.at_least, paths.longest(entry_, exit_))),
        devices_(problem.device_count()),
        with_ports_(problem.rules().congestion &&
                    problem.interconnect() == InterconnectKind::links &&
                    !problem.has_shared_spaces()),
        sent_(devices_),
        received_(devices_) {}

  // A passage of length `enough` or less keeps all rows, so the bound is the program's or that.
  double bound(const SegmentProgramLimits& limits) {
    if (at_least_ >= enough_) return enough_;
    length_ = program_.add_variable(enough_, 1);
    if (!add_ops()) return enough_;
    for (const OpId op : ops_) {
      if (op == paths_.segment().exit) continue;  // its readers are in the next segment
      for (const TensorId output : problem_.outputs(op)) add_tensor(output, op);
    }
    if (paths_.segment().entry.valid()) {
      for (const TensorId output : problem_.outputs(paths_.segment().entry)) add_entering(output);
    }
    for (const DeviceId device : problem_.devices()) add_device(device);
    return std::min(enough_, std::max(at_least_, program_.bound(limits)));
  }

 private:
  [[nodiscard]] int& part(std::size_t place, DeviceId device) {
    return parts_[place * devices_ + device.index()];
  }
  [[nodiscard]] double time(std::size_t place, DeviceId device) const {
    return problem_.time(ops_[place], device);
  }
  [[nodiscard]] double rest(std::size_t place, DeviceId device) const {
    return time(place, device) + paths_.tail(exit_, place, device);
  }

  // False if an op fits nowhere within `enough`.
  bool add_ops() {
    parts_.assign(ops_.size() * devices_, kNone);
    for (std::size_t place = 0; place < ops_.size(); ++place) {
      std::vector<LinearTerm> choice;
      starts_.push_back(program_.add_variable(enough_, 0));
      std::vector<LinearTerm> after{{starts_.back(), -1}};
      std::vector<LinearTerm> before{{starts_.back(), 1}, {length_, -1}};
      for (const DeviceId device : problem_.devices()) {
        if (paths_.through(entry_, exit_, place, device) > loose_sum(enough_)) continue;
        const int variable = program_.add_variable(1, 0);
        part(place, device) = variable;
        choice.push_back({variable, 1});
        after.push_back({variable, paths_.head(entry_, place, device)});
        before.push_back({variable, rest(place, device)});
      }
      if (choice.empty()) return false;
      program_.add_equal(1, choice);
      program_.add_at_most(0, after);
      program_.add_at_most(0, before);
    }
    return true;
  }

  // Its edges, and its transfers as what the ports do.
  void add_tensor(TensorId tensor, OpId producer) {
    const std::size_t from = paths_.place(producer);
    std::vector<int> moves(devices_ * devices_, kNone);
    for (const OpId reader : problem_.consumers(tensor)) {
      const std::size_t to = paths_.place(reader);
      std::vector<std::vector<LinearTerm>> leaving(devices_);
      std::vector<std::vector<LinearTerm>> entering(devices_);
      std::vector<LinearTerm> path{{starts_[from], 1}, {starts_[to], -1}};
      for (const DeviceId a : problem_.devices()) {
        if (part(from, a) == kNone) continue;
        path.push_back({part(from, a), time(from, a)});
        for (const DeviceId b : problem_.devices()) {
          const double move = move_time(problem_, tensor, a, b);
          if (part(to, b) == kNone || move == kInfinity) continue;
          const int variable = program_.add_variable(1, 0);
          leaving[a.index()].push_back({variable, 1});
          entering[b.index()].push_back({variable, 1});
          if (move == 0) continue;
          path.push_back({variable, move});
          if (!with_ports_) continue;
          int& moved = moves[a.index() * devices_ + b.index()];
          if (moved == kNone) {
            moved = add_transfer(tensor, a, b, paths_.head(entry_, from, a) + time(from, a));
          }
          program_.add_at_most(0, {{variable, 1}, {moved, -1}});
        }
      }
      program_.add_at_most(0, path);
      for (const DeviceId device : problem_.devices()) {
        add_marginal(leaving[device.index()], part(from, device));
        add_marginal(entering[device.index()], part(to, device));
      }
    }
  }

  void add_marginal(std::vector<LinearTerm>& terms, int whole) {
    if (whole == kNone) return;
    terms.push_back({whole, -1});
    program_.add_equal(0, terms);
  }

  // A tensor of the entry: heads have its path already.
  void add_entering(TensorId tensor) {
    if (!with_ports_) return;
    const DeviceId from{entry_};
    std::vector<int> moves(devices_, kNone);
    for (const OpId reader : problem_.consumers(tensor)) {
      for (const DeviceId to : problem_.devices()) {
        const int there = part(paths_.place(reader), to);
        if (there == kNone || move_time(problem_, tensor, from, to) == 0) continue;
        int& moved = moves[to.index()];
        if (moved == kNone) moved = add_transfer(tensor, from, to, 0);
        program_.add_at_most(0, {{there, 1}, {moved, -1}});
      }
    }
  }

  int add_transfer(TensorId tensor, DeviceId from, DeviceId to, double head) {
    double tail = kInfinity;
    for (const OpId reader : problem_.consumers(tensor)) {
      const std::size_t place = paths_.place(reader);
      if (part(place, to) != kNone) tail = std::min(tail, rest(place, to));
    }
    const int variable = program_.add_variable(1, 0);
    const Activity transfer{variable, move_time(problem_, tensor, from, to), head, tail};
    sent_[from.index()].push_back(transfer);
    received_[to.index()].push_back(transfer);
    return variable;
  }

  void add_device(DeviceId device) {
    std::vector<Activity> ops;
    for (std::size_t place = 0; place < ops_.size(); ++place) {
      if (part(place, device) == kNone || time(place, device) == 0) continue;
      ops.push_back({part(place, device), time(place, device), paths_.head(entry_, place, device),
                     paths_.tail(exit_, place, device)});
    }
    add_windows(ops, useful_lanes(problem_, device));
    add_windows(sent_[device.index()], 1);
    add_windows(received_[device.index()], 1);
  }

  static std::vector<double> thresholds(std::span<const Activity> all, double Activity::*which) {
    std::vector<double> values;
    for (const Activity& activity : all) values.push_back(activity.*which);
    std::ranges::sort(values);
    values.erase(std::unique(values.begin(), values.end()), values.end());
    if (values.size() <= kThresholds) return values;
    std::vector<double> chosen;
    for (std::size_t i = 0; i < kThresholds; ++i) {
      chosen.push_back(values[i * values.size() / kThresholds]);
    }
    return chosen;
  }

  void add_windows(std::span<const Activity> all, double lanes) {
    std::vector<std::vector<int>> seen;
    for (const double head : thresholds(all, &Activity::head)) {
      for (const double tail : thresholds(all, &Activity::tail)) {
        std::vector<LinearTerm> inside;
        std::vector<int> members;
        for (const Activity& activity : all) {
          if (activity.head < head || activity.tail < tail) continue;
          inside.push_back({activity.variable, activity.length / lanes});
          members.push_back(activity.variable);
        }
        if (inside.empty() || std::ranges::find(seen, members) != seen.end()) continue;
        seen.push_back(std::move(members));
        add_window(std::move(inside), head + tail);
      }
    }
  }

  void add_window(std::vector<LinearTerm> inside, double outside) {
    const bool always = outside <= safe_sum(at_least_);
    if (!always) {
      const double mean = outside / static_cast<double>(inside.size());
      for (LinearTerm& term : inside) term.coefficient += mean;
    }
    inside.push_back({length_, -1});
    program_.add_at_most(always ? -outside : 0, std::move(inside));
  }

  static constexpr int kNone = -1;

  const Problem& problem_;
  const SegmentPaths& paths_;
  const std::vector<OpId>& ops_;
  std::size_t entry_;
  std::size_t exit_;
  double enough_;
  double at_least_;
  std::size_t devices_;
  bool with_ports_;
  BoxProgram program_;
  int length_ = kNone;
  std::vector<int> parts_;                   // op x device
  std::vector<int> starts_;                  // by op
  std::vector<std::vector<Activity>> sent_;  // by device
  std::vector<std::vector<Activity>> received_;
};

}  // namespace

std::size_t segment_program_size(const Problem& problem, const CutSegment& segment) {
  std::size_t edges = 0;
  for (const OpId op : segment.ops) edges += problem.successors(op).size();
  return (segment.ops.size() + 2 * edges * problem.device_count()) * problem.device_count();
}

double segment_program_bound(const Problem& problem, const SegmentPaths& paths,
                             const SegmentPassage& passage, const SegmentProgramLimits& limits) {
  return SegmentProgram(problem, paths, passage).bound(limits);
}

}  // namespace placewright
