#include "planning/side_by_side.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <new>
#include <optional>
#include <system_error>
#include <thread>

#include "machine/fan_out.h"
#include "planning/members.h"
#include "planning/time_shares.h"

namespace placewright {
namespace {

constexpr auto kLookAround = std::chrono::milliseconds(10);
// Fewer proofs than this part of all claims get no thread of their own.
constexpr double kLeastProofs = 0.02;
// Of the time that is left, when a proof begins: at least this much, and again as long as it gains.
constexpr double kProofShare = 0.3;
constexpr double kWorthGoingOn = 1e-4;
// What runs again must be worth it.
constexpr double kLeastSecondsAgain = 0.05;

class SideBySide {
 public:
  SideBySide(const Problem& problem, const std::vector<const PlannerEntry*>& entries,
             Control& control)
      : problem_(problem), control_(control), members_(problem, control) {
    for (const PlannerEntry* entry : entries) {
      (entry->effort == Effort::instant    ? instant_
       : turn(*entry) == Turn::proof       ? proofs_.waiting
       : turn(*entry) == Turn::improvement ? improvers_.waiting
                                           : quick_)
          .push_back(entry);
      if (again_ == nullptr || entry->share > again_->share) {
        if (turn(*entry) == Turn::improvement && entry->uses_threads) again_ = entry;
      }
    }
    for (const PlannerEntry* entry : quick_) quick_claims_ += claim(*entry, problem);
    // It is there from the beginning to the end.
    auto& waiting = improvers_.waiting;
    const auto steady = std::ranges::find(waiting, again_);
    if (steady != waiting.end()) std::rotate(waiting.begin(), steady, steady + 1);
    share_out_threads();
  }

  Answer run() {
    run_instant();
    if (!over()) run_threads();
    if (failure_) std::rethrow_exception(failure_);
    return members_.finish();
  }

 private:
  // Members of one kind, and the threads that begin with them.
  struct Kind {
    std::deque<const PlannerEntry*> waiting;
    int threads = 0;
    std::deque<int> crews;  // threads of each seat that is free
  };
  struct Seat {
    bool proves = false;
    int crew = 1;
  };
  struct Job {
    const PlannerEntry* member;  // null: the bounds of the problem
    Budget budget;
    double beyond = 0;
  };

  [[nodiscard]] double claims(const Kind& kind) const {
    double sum = 0;
    for (const PlannerEntry* entry : kind.waiting) sum += claim(*entry, problem_);
    return sum;
  }

  void share_out_threads() {
    const int threads = control_.budget().threads;
    const double proofs = claims(proofs_);
    const double part = proofs / std::max(proofs + claims(improvers_), 1e-9);
    if (improvers_.waiting.empty()) {
      proofs_.threads = threads;
    } else if (part > kLeastProofs) {
      const auto wanted = static_cast<int>(std::lround(part * threads));
      proofs_.threads = std::clamp(wanted, 1, threads - 1);
    }
    improvers_.threads = threads - proofs_.threads;
    for (Kind* kind : {&proofs_, &improvers_}) {
      const int seats = std::min(kind->threads, static_cast<int>(kind->waiting.size()));
      for (int i = 0; i < seats; ++i) {
        kind->crews.push_back(kind->threads / seats + (i < kind->threads % seats ? 1 : 0));
      }
    }
  }

  // In the calling thread: there is a plan whatever the limit, where one of them has one.
  void run_instant() {
    double longest = 0;
    for (const PlannerEntry* entry : instant_) {
      const bool needed = !members_.exchange()->best();
      const double left = control_.remaining() - members_.longest_check();
      if (over() || (!needed && left < longest)) continue;
      const double begin = control_.elapsed();
      Budget budget = control_.budget();
      budget.seconds = std::max(0.0, left);
      budget.threads = 1;
      Control part = control_.beside(entry->name, budget, control_.interruption());
      members_.run(*entry, part);
      longest = std::max(longest, control_.elapsed() - begin);
      report();
    }
  }

  void run_threads() {
    std::vector<std::jthread> threads;
    try {
      while (std::ssize(threads) < control_.budget().threads) {
        threads.push_back(start_thread([this] { work(); }));
        const std::lock_guard guard(mutex_);
        ++working_;
      }
    } catch (const std::system_error&) {
    } catch (const std::bad_alloc&) {
    }
    if (threads.empty()) {
      interruption_ = control_.interruption();
      ++working_;
      work();
    }
    std::unique_lock lock(mutex_);
    while (working_ > 0) {
      idle_.wait_for(lock, kLookAround);
      if (members_.settled() || control_.interrupted()) stop_ = true;
      lock.unlock();
      report();
      lock.lock();
    }
    lock.unlock();
    threads.clear();  // joins
    control_.deliver_reports();
  }

  // What each thread does.
  void work() {
    std::optional<Seat> seat;
    try {
      while (std::optional<Job> job = next(seat)) run(*job);
    } catch (...) {
      const std::lock_guard guard(mutex_);
      if (!failure_) failure_ = std::current_exception();
      stop_ = true;
    }
    const std::lock_guard guard(mutex_);
    --working_;
    idle_.notify_all();
  }

  void run(const Job& job) {
    if (job.member == nullptr) return members_.take_bound_of_problem();
    Control part = control_.beside(job.member->name, job.budget, interruption_);
    if (problem_.rules().memory == MemoryModel::resident) part.exchange = members_.exchange();
    const double bound = members_.exchange()->bound();
    members_.run(*job.member, part);
    judge(*job.member, bound);
    if (turn(*job.member) == Turn::own_quick &&
        members_.exchange()->found_by() == job.member->name) {
      quick_plan_ = true;
    }
    if (members_.settled()) stop_ = true;
  }

  // Whether a proof is worth more time: its plan is the best, or the bound rose meanwhile.
  void judge(const PlannerEntry& member, double bound_before) {
    const Exchange& exchange = *members_.exchange();
    const bool gained =
        exchange.found_by() == member.name || exchange.bound() > (1 + kWorthGoingOn) * bound_before;
    const std::lock_guard guard(mutex_);
    if (turn(member) == Turn::proof) promising_ = gained ? &member : nullptr;
  }

  std::optional<Job> next(std::optional<Seat>& seat) {
    const std::lock_guard guard(mutex_);
    while (!over()) {
      if (!std::exchange(bound_taken_, true)) return Job{nullptr, {}};
      std::optional<Job> job;
      if (!quick_.empty()) {
        job = next_quick();
      } else if (seat || (seat = free_seat())) {
        if (!some_waiting()) return again(seat->crew);
        job = next_long(*seat);
      } else {
        return std::nullopt;
      }
      if (job->budget.seconds > 0 || job->beyond > 0) {
        job->budget.seconds = std::max(job->budget.seconds, job->beyond);
        return job;
      }
    }
    return std::nullopt;
  }

  [[nodiscard]] bool over() const { return stop_ || members_.settled() || control_.interrupted(); }
  [[nodiscard]] bool some_waiting() const {
    return !proofs_.waiting.empty() || !improvers_.waiting.empty();
  }
  [[nodiscard]] double left() const { return control_.remaining() - members_.longest_check(); }

  std::optional<Seat> free_seat() {
    for (Kind* kind : {&improvers_, &proofs_}) {
      if (kind->crews.empty()) continue;
      const int crew = kind->crews.front();
      kind->crews.pop_front();
      return Seat{kind == &proofs_, crew};
    }
    return std::nullopt;
  }

  Job next_quick() {
    const PlannerEntry& member = *quick_.front();
    quick_.pop_front();
    const Moment moment{control_.elapsed(), left(), quick_plan_,
                        quick_claims_ + claims(proofs_) + claims(improvers_)};
    quick_claims_ -= claim(member, problem_);
    return job_of(member, share(member, problem_, moment), 1);
  }

  // Of its own kind, else of the other. The steady one has all the time; a proof has no less than
  // its part; the others have what they claim, beside what runs again when they are through.
  Job next_long(const Seat& seat) {
    Kind& own = seat.proves ? proofs_ : improvers_;
    Kind& kind = own.waiting.empty() ? (seat.proves ? improvers_ : proofs_) : own;
    const PlannerEntry& member = *kind.waiting.front();
    const double rest = again_ != nullptr ? again_->share : 0;
    const Moment moment{control_.elapsed(), left(), quick_plan_, claims(kind) + rest};
    double part = share(member, problem_, moment) * std::max(1, kind.threads / seat.crew);
    if (turn(member) == Turn::proof) part = std::max(part, kProofShare);
    if (&member == again_) part = 1;
    kind.waiting.pop_front();
    return job_of(member, std::min(1.0, part), seat.crew);
  }

  // A proof that has gained something, else local search with another seed; from the best plan.
  std::optional<Job> again(int crew) {
    if (left() < kLeastSecondsAgain) return std::nullopt;
    if (promising_ != nullptr) return job_of(*std::exchange(promising_, nullptr), 1, crew);
    if (again_ == nullptr || !members_.exchange()->best()) return std::nullopt;
    Job job = job_of(*again_, 1, crew);
    job.budget.seed += 7919 * ++runs_again_;
    return job;
  }

  [[nodiscard]] Job job_of(const PlannerEntry& member, double part, int crew) const {
    Job job{&member, control_.budget()};
    job.budget.threads = member.uses_threads ? crew : 1;
    job.budget.memory /= control_.budget().threads;
    job.budget.seconds = std::min(left() * part, control_.remaining());
    job.beyond = seconds_beyond(member, problem_, left());
    return job;
  }

  void report() {
    const Exchange& exchange = *members_.exchange();
    control_.deliver_reports();
    if (exchange.value() == told_value_ && exchange.bound() == told_bound_) return;
    told_value_ = exchange.value();
    told_bound_ = exchange.bound();
    control_.report(told_value_, told_bound_);
  }

  const Problem& problem_;
  Control& control_;
  Members members_;
  std::deque<const PlannerEntry*> instant_;
  double told_value_ = kInfinity;
  double told_bound_ = 0;
  std::atomic<bool> stop_ = false;
  const std::atomic<bool>* interruption_ = &stop_;  // of members in threads
  std::atomic<bool> quick_plan_ = false;

  std::mutex mutex_;  // for all below
  std::condition_variable idle_;
  int working_ = 0;
  std::exception_ptr failure_;
  bool bound_taken_ = false;
  std::deque<const PlannerEntry*> quick_;
  double quick_claims_ = 0;
  Kind proofs_;
  Kind improvers_;
  const PlannerEntry* again_ = nullptr;      // runs all the time, and more than once
  const PlannerEntry* promising_ = nullptr;  // a proof that was stopped by its part of the time
  std::uint64_t runs_again_ = 0;
};

}  // namespace

Answer run_side_by_side(const Problem& problem, const std::vector<const PlannerEntry*>& entries,
                        Control& control) {
  return SideBySide(problem, entries, control).run();
}

}  // namespace placewright
