#include "serving/simulation.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <stdexcept>

namespace placewright {
namespace {

// Steps that share the cores in equal parts.
struct RunningStep {
  Step step;
  double left = 0;
};

class ServiceSimulator {
 public:
  ServiceSimulator(std::span<const ServedModel> models, const SchedulerOptions& options,
                   std::span<const RequestArrival> arrivals, double overhead)
      : scheduler_(options), arrivals_(arrivals), overhead_(overhead) {
    for (const ServedModel& model : models) scheduler_.add(model);
    result_.requests.resize(arrivals.size());
    for (std::size_t i = 0; i < arrivals.size(); ++i) {
      if (arrivals[i].cancelled) leaving_.emplace(*arrivals[i].cancelled, i);
    }
  }

  ServiceSimulation run() {
    while (true) {
      const double end = earliest_end();
      const double arrival = next_ < arrivals_.size() ? arrivals_[next_].time : kForever;
      const double leave = leaving_.empty() ? kForever : leaving_.begin()->first;
      const double event = std::min({end, arrival, leave});
      if (event == kForever) break;
      advance(event);
      if (end <= event) {
        end_steps();
      } else if (arrival <= event) {
        admit(next_++);
      } else {
        leave_now(leaving_.begin()->second);
        leaving_.erase(leaving_.begin());
      }
      start_steps();
    }
    result_.duration = now_;
    return std::move(result_);
  }

 private:
  static constexpr double kForever = std::numeric_limits<double>::infinity();

  [[nodiscard]] double earliest_end() const {
    double least = kForever;
    for (const RunningStep& running : running_) least = std::min(least, running.left);
    return running_.empty() ? kForever : now_ + least * static_cast<double>(running_.size());
  }
  void advance(double event) {
    if (!running_.empty()) {
      const double each = (event - now_) / static_cast<double>(running_.size());
      for (RunningStep& running : running_) running.left -= each;
      result_.busy += event - now_;
    }
    now_ = event;
  }
  void end_steps() {
    const auto first = std::ranges::min_element(running_, {}, &RunningStep::left);
    const Step step = std::move(first->step);
    running_.erase(first);
    const Scheduler::Finished finished = scheduler_.finish(step, now_);
    for (const RequestId id : finished.completed) settle(id, RequestFate::complete);
    for (const RequestId id : finished.cancelled) settle(id, RequestFate::cancelled);
  }
  void admit(std::size_t arrival) {
    const RequestArrival& request = arrivals_[arrival];
    const Admission admission =
        scheduler_.submit({.model = request.model, .deadline = request.deadline}, now_);
    if (admission.request) {
      arrival_of_.emplace(*admission.request, arrival);
      id_of_.emplace(arrival, *admission.request);
    } else {
      result_.requests[arrival] = {RequestFate::refused, now_};
    }
  }
  void leave_now(std::size_t arrival) {
    const auto found = id_of_.find(arrival);
    if (found == id_of_.end()) return;
    const RequestId id = found->second;
    if (scheduler_.cancel(id)) settle(id, RequestFate::cancelled);
  }
  void settle(RequestId id, RequestFate fate) {
    const auto found = arrival_of_.find(id);
    result_.requests[found->second] = {fate, now_};
    id_of_.erase(found->second);
    arrival_of_.erase(found);
  }
  void start_steps() {
    while (auto step = scheduler_.next(now_)) {
      const double overhead =
          step->last ? overhead_ * static_cast<double>(step->requests.size()) : 0;
      const double time = step->expected + overhead;
      running_.push_back({std::move(*step), time});
    }
  }

  Scheduler scheduler_;
  std::span<const RequestArrival> arrivals_;
  double overhead_;
  ServiceSimulation result_;
  std::vector<RunningStep> running_;
  std::multimap<double, std::size_t> leaving_;
  std::map<RequestId, std::size_t> arrival_of_;
  std::map<std::size_t, RequestId> id_of_;
  std::size_t next_ = 0;
  double now_ = 0;
};

// When the request had to be answered, if anybody said so.
std::optional<double> deadline_of(const ServedModel& model, const RequestArrival& arrival) {
  if (arrival.deadline) return arrival.deadline;
  if (model.service.objective) return arrival.time + *model.service.objective;
  return std::nullopt;
}

struct Collected {
  ServiceSummary summary;
  std::vector<double> latencies;
  double normalised = 0;
  std::size_t deadlines = 0;
  std::size_t in_time = 0;

  void add(const ServedModel& model, const RequestArrival& arrival, const SimulatedRequest& met) {
    ++summary.requests;
    const std::optional<double> deadline = deadline_of(model, arrival);
    const bool left = met.fate == RequestFate::cancelled;  // and nobody waits for the answer
    deadlines += deadline && !left ? 1 : 0;
    summary.refused += met.fate == RequestFate::refused ? 1 : 0;
    summary.cancelled += left ? 1 : 0;
    if (met.fate != RequestFate::complete) return;
    ++summary.answered;
    latencies.push_back(met.end - arrival.time);
    normalised += latencies.back() / model.whole;
    in_time += deadline && met.end <= *deadline ? 1 : 0;
  }
  ServiceSummary finished(const std::string& name) {
    summary.model = name;
    const auto answered = static_cast<double>(std::max<std::size_t>(summary.answered, 1));
    for (const double latency : latencies) summary.mean += latency / answered;
    summary.p50 = percentile(latencies, 0.5);
    summary.p95 = percentile(latencies, 0.95);
    summary.p99 = percentile(latencies, 0.99);
    summary.normalised = normalised / answered;
    if (deadlines > 0) {
      summary.in_time = static_cast<double>(in_time) / static_cast<double>(deadlines);
    }
    return std::move(summary);
  }
};

}  // namespace

ServiceSimulation simulate_service(std::span<const ServedModel> models,
                                   const SchedulerOptions& options,
                                   std::span<const RequestArrival> arrivals, double overhead) {
  return ServiceSimulator(models, options, arrivals, overhead).run();
}

std::vector<RequestArrival> poisson_arrivals(std::span<const double> rates, std::size_t count,
                                             std::uint64_t seed) {
  double total = 0;
  for (const double rate : rates) total += rate;
  if (!(total > 0)) throw std::invalid_argument("there is no model with requests");
  std::mt19937_64 random(seed);
  std::exponential_distribution<double> gap(total / 1000);
  std::discrete_distribution<std::size_t> which(rates.begin(), rates.end());
  std::vector<RequestArrival> arrivals(count);
  double now = 0;
  for (RequestArrival& arrival : arrivals) {
    now += gap(random);
    arrival = {now, which(random)};
  }
  return arrivals;
}

double load_of(std::span<const ServedModel> models, std::span<const RequestArrival> arrivals) {
  if (arrivals.empty() || !(arrivals.back().time > 0)) return 0;
  double work = 0;
  for (const RequestArrival& arrival : arrivals) work += models[arrival.model].whole;
  return work / arrivals.back().time;
}

std::vector<RequestArrival> at_load(std::span<const ServedModel> models,
                                    std::vector<RequestArrival> arrivals, double load) {
  const double now = load_of(models, arrivals);
  if (!(now > 0)) return arrivals;
  const double factor = now / load;
  for (RequestArrival& arrival : arrivals) {
    const double time = arrival.time * factor;
    // How long a client waits does not depend on how many others there are.
    if (arrival.deadline) *arrival.deadline += time - arrival.time;
    if (arrival.cancelled) *arrival.cancelled += time - arrival.time;
    arrival.time = time;
  }
  return arrivals;
}

std::vector<ServiceSummary> summaries_of(std::span<const ServedModel> models,
                                         std::span<const RequestArrival> arrivals,
                                         const ServiceSimulation& simulation) {
  std::vector<Collected> collected(models.size() + 1);
  for (std::size_t i = 0; i < arrivals.size(); ++i) {
    const ServedModel& model = models[arrivals[i].model];
    collected[arrivals[i].model].add(model, arrivals[i], simulation.requests[i]);
    collected.back().add(model, arrivals[i], simulation.requests[i]);
  }
  std::vector<ServiceSummary> summaries;
  for (std::size_t model = 0; model < models.size(); ++model) {
    summaries.push_back(collected[model].finished(models[model].name));
  }
  summaries.push_back(collected.back().finished("all"));
  return summaries;
}

double percentile(std::vector<double>& values, double share) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const auto rank = std::ceil(share * static_cast<double>(values.size()));
  return values[static_cast<std::size_t>(std::max(rank, 1.0)) - 1];
}

}  // namespace placewright
