#include "cli/gantt.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include <fmt/format.h>

#include "analysis/stage_turns.h"
#include "cli/device_use.h"
#include "cli/text.h"

namespace placewright::cli {
namespace {

struct Block {
  std::string name;
  double start;
  double end;
};

class Canvas {
 public:
  Canvas(std::size_t label_width, std::size_t width, double end)
      : label_width_(label_width), cells_(width - label_width - 3), end_(end > 0 ? end : 1) {}

  [[nodiscard]] std::size_t cells() const { return cells_; }

  [[nodiscard]] std::string row(const std::string& label, const std::string& content) const {
    const std::size_t blanks = label_width_ - std::min(label_width_, display_width(label));
    return fmt::format("{}{} |{}|\n", label, std::string(blanks, ' '), content);
  }

  // The blocks of one lane; they do not overlap in time.
  [[nodiscard]] std::string ops_row(const std::string& label,
                                    const std::vector<Block>& blocks) const {
    constexpr std::size_t kNobody = static_cast<std::size_t>(-1);
    std::vector<std::size_t> owner(cells_, kNobody);
    std::vector<double> share(cells_, 0);
    std::vector<int> owners(cells_, 0);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      for (std::size_t cell = first_cell(blocks[i]); cell <= last_cell(blocks[i]); ++cell) {
        const double overlap = overlap_of(blocks[i], cell);
        ++owners[cell];
        if (overlap <= share[cell] && owner[cell] != kNobody) continue;
        owner[cell] = i;
        share[cell] = overlap;
      }
    }
    std::string content(cells_, '.');
    for (std::size_t begin = 0; begin < cells_;) {
      std::size_t end = begin + 1;
      while (end < cells_ && owner[end] == owner[begin]) ++end;
      if (owner[begin] != kNobody) {
        content.replace(begin, end - begin,
                        drawn(blocks[owner[begin]].name, end - begin, owners[begin] > 1));
      }
      begin = end;
    }
    return row(label, content);
  }

  // Where something moves; blocks may overlap.
  [[nodiscard]] std::string transfers_row(const std::string& label,
                                          const std::vector<Block>& blocks) const {
    std::string content(cells_, '.');
    for (const Block& block : blocks) {
      for (std::size_t cell = first_cell(block); cell <= last_cell(block); ++cell) {
        content[cell] = '-';
      }
    }
    return row(label, content);
  }

  [[nodiscard]] std::string axis(const std::string& label) const {
    constexpr std::size_t kTicks = 4;
    std::string line(cells_, ' ');
    for (std::size_t tick = 0; tick <= kTicks; ++tick) {
      const double time = end_ * static_cast<double>(tick) / kTicks;
      const std::string text = fmt::format("{:.4g}", time);
      const std::size_t at = cells_ * tick / kTicks;
      const std::size_t begin =
          tick == 0 ? 0 : std::min(at - text.size() / 2, cells_ - text.size());
      line.replace(begin, text.size(), text);
    }
    return fmt::format("{:<{}}  {}\n", label, label_width_, line);
  }

 private:
  [[nodiscard]] double cell_time() const { return end_ / static_cast<double>(cells_); }
  [[nodiscard]] std::size_t cell_at(double time) const {
    return std::min(static_cast<std::size_t>(std::max(0.0, std::floor(time / cell_time()))),
                    cells_ - 1);
  }
  [[nodiscard]] std::size_t first_cell(const Block& block) const { return cell_at(block.start); }
  [[nodiscard]] std::size_t last_cell(const Block& block) const {
    const double last = std::ceil(block.end / cell_time() - 1e-9) - 1;
    return std::max(first_cell(block), cell_at(std::max(0.0, last) * cell_time() * (1 + 1e-12)));
  }
  [[nodiscard]] double overlap_of(const Block& block, std::size_t cell) const {
    const double begin = cell_time() * static_cast<double>(cell);
    return std::min(block.end, begin + cell_time()) - std::max(block.start, begin);
  }

  static std::string drawn(const std::string& name, std::size_t width, bool shared) {
    if (width == 1) return shared ? "#" : "|";
    const std::size_t inside = width - 2;
    // Names are cut by bytes, so only plain ones are shown in part.
    const bool plain = display_width(name) == name.size();
    if (!plain || inside < std::min<std::size_t>(name.size(), 2)) {
      return '[' + std::string(inside, '=') + ']';
    }
    const std::string text = name.substr(0, inside);
    return '[' + text + std::string(inside - text.size(), '=') + ']';
  }

  std::size_t label_width_;
  std::size_t cells_;
  double end_;
};

std::string label_of(const Problem& problem, DeviceId device) {
  return printable(problem.device(device).name);
}

std::size_t longest_label(const Problem& problem) {
  std::size_t longest = 4;
  for (const DeviceId device : problem.devices()) {
    longest = std::max(longest, display_width(label_of(problem, device)));
  }
  for (const ResourceId resource : problem.resources()) {
    longest = std::max(longest, display_width(printable(problem.resource(resource).name)));
  }
  return longest;
}

// Spreads the ops of a device over rows so that none overlap in a row: first row that is free.
std::vector<std::vector<Block>> lanes_of(std::vector<Block> blocks) {
  std::stable_sort(blocks.begin(), blocks.end(),
                   [](const Block& a, const Block& b) { return a.start < b.start; });
  std::vector<std::vector<Block>> lanes(1);
  for (Block& block : blocks) {
    const double tolerance = 1e-9 * std::max(1.0, block.end);
    auto lane = std::find_if(lanes.begin(), lanes.end(), [&](const std::vector<Block>& row) {
      return row.empty() || row.back().end <= block.start + tolerance;
    });
    if (lane == lanes.end()) lane = lanes.insert(lanes.end(), std::vector<Block>{});
    lane->push_back(std::move(block));
  }
  return lanes;
}

// What a device does when.
struct Work {
  DeviceId device;
  Block block;
};

std::vector<Work> ops_of(const Problem& problem, const Plan& plan) {
  std::vector<Work> ops;
  for (const OpId op : problem.ops()) {
    const double start = plan.schedule->start[op];
    const double end = plan.schedule->end[op];
    if (end > start) {
      ops.push_back({plan.placement[op], {printable(problem.op(op).name), start, end}});
    }
  }
  return ops;
}

std::vector<Work> calls_of(const Plan& plan) {
  std::vector<Work> calls;
  for (const Call& call : plan.calls) {
    calls.push_back({call.device, {fmt::format("{} ops", call.ops.size()), call.start, call.end}});
  }
  return calls;
}

// One period of a pipeline whose stages share resources; replicas work at the same time.
std::vector<Work> turns_of(const Problem& problem, const Plan& plan) {
  std::vector<Work> turns;
  for (const StageTurn& turn : stage_turns(problem, plan)) {
    const Block block{fmt::format("stage {}", turn.stage + 1), turn.start, turn.end};
    for (const DeviceId device : plan.stages[turn.stage].devices) turns.push_back({device, block});
  }
  return turns;
}

std::string device_rows(const Problem& problem, DeviceId device, const std::vector<Work>& works,
                        const Canvas& canvas) {
  std::vector<Block> blocks;
  for (const Work& work : works) {
    if (work.device == device) blocks.push_back(work.block);
  }
  std::string text;
  for (const auto& lane : lanes_of(std::move(blocks))) {
    text += canvas.ops_row(label_of(problem, device), lane);
  }
  return text;
}

// Who holds each resource when.
std::string resource_rows(const Problem& problem, const std::vector<Work>& works,
                          const Canvas& canvas) {
  std::string text;
  for (const ResourceId resource : problem.resources()) {
    std::vector<Block> holders;
    for (const Work& work : works) {
      const auto uses = problem.uses(work.device);
      if (std::ranges::count(uses, resource, &ResourceUse::resource) > 0) {
        holders.push_back(work.block);
      }
    }
    const std::string name = printable(problem.resource(resource).name);
    for (const auto& lane : lanes_of(std::move(holders))) text += canvas.ops_row(name, lane);
  }
  return text;
}

std::string schedule_rows(const Problem& problem, const Plan& plan, const Canvas& canvas) {
  std::string text;
  const std::vector<Work> ops = ops_of(problem, plan);
  for (const DeviceId device : problem.devices()) {
    std::vector<Block> sends;
    std::vector<Block> receives;
    for (const Transfer& transfer : plan.schedule->transfers) {
      if (transfer.end <= transfer.start) continue;
      if (transfer.from == device) sends.push_back({"", transfer.start, transfer.end});
      if (transfer.to == device) receives.push_back({"", transfer.start, transfer.end});
    }
    const std::string name = label_of(problem, device);
    text += device_rows(problem, device, ops, canvas);
    if (!sends.empty()) text += canvas.transfers_row(name + " >", sends);
    if (!receives.empty()) text += canvas.transfers_row(name + " <", receives);
  }
  return text + resource_rows(problem, ops, canvas);
}

std::string call_rows(const Problem& problem, const Plan& plan, const Canvas& canvas) {
  std::string text;
  const std::vector<Work> calls = calls_of(plan);
  for (const DeviceId device : problem.devices()) {
    if (!problem.on_host(device)) text += device_rows(problem, device, calls, canvas);
  }
  return text + resource_rows(problem, calls, canvas);
}

// Stages that share nothing work all the time: what matters is how much of it their loads fill.
std::string load_rows(const Problem& problem, const Plan& plan, const Canvas& canvas) {
  std::string text;
  const auto uses = device_uses(problem, plan);
  for (const DeviceId device : problem.devices()) {
    const double share = plan.value > 0 ? std::min(1.0, uses[device].busy / plan.value) : 0;
    const auto filled = static_cast<std::size_t>(share * static_cast<double>(canvas.cells()));
    text += canvas.row(label_of(problem, device),
                       std::string(filled, '=') + std::string(canvas.cells() - filled, '.'));
  }
  return text;
}

// Whether bars begin at the left and only their lengths say something.
bool is_load_chart(const Plan& plan) {
  return !plan.stages.empty() && !plan.stages.front().offset;
}

std::string stage_rows(const Problem& problem, const Plan& plan, const Canvas& canvas) {
  if (is_load_chart(plan)) return load_rows(problem, plan, canvas);
  const std::vector<Work> turns = turns_of(problem, plan);
  std::string text;
  for (const DeviceId device : problem.devices()) {
    text += device_rows(problem, device, turns, canvas);
  }
  return text + resource_rows(problem, turns, canvas);
}

}  // namespace

std::string gantt(const Problem& problem, const Plan& plan, int width) {
  const std::size_t label_width = longest_label(problem) + 2;
  const Canvas canvas(label_width,
                      std::max(static_cast<std::size_t>(std::max(width, 40)), label_width + 20),
                      problem.objective() == Objective::throughput ? plan.value : end_of(plan));
  const std::string rows = plan.schedule          ? schedule_rows(problem, plan, canvas)
                           : !plan.stages.empty() ? stage_rows(problem, plan, canvas)
                                                  : call_rows(problem, plan, canvas);
  const std::string axis_label = problem.unit() != TimeUnit::none
                                     ? std::string{name_of(problem.unit())}
                                 : is_load_chart(plan) ? "load"
                                                       : "time";
  return rows + canvas.axis(axis_label);
}

}  // namespace placewright::cli
