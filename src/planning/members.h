// The members of `auto` at work on one problem: the best plan and bound of all, and what went
// wrong. Any thread may run a member.

#pragma once

#include <atomic>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "planners/exchange.h"
#include "planners/planner.h"

namespace placewright {

class Members {
 public:
  // Starts from the control's plan, where there is one. Both must outlive it.
  Members(const Problem& problem, Control& control);

  // Runs one from the best plan so far, and keeps what it answers. What it throws becomes a note;
  // in debug builds WrongPlan goes through.
  void run(const PlannerEntry& member, Control& part);

  // On large problems it takes longer than an instant planner, so it waits for those. Asked again
  // it does nothing.
  void take_bound_of_problem();

  // The best plan is proved, or it is proved that there is none.
  [[nodiscard]] bool settled() const;
  [[nodiscard]] const std::shared_ptr<Exchange>& exchange() const { return exchange_; }
  // Seconds to keep for the check of the next plan.
  [[nodiscard]] double longest_check() const { return longest_check_; }

  // The answer of all; throws WrongPlan where every plan was wrong.
  Answer finish();

 private:
  void add(const PlannerEntry& member, Answer answer);
  // Told in a note, and the rest goes on.
  void fail(const std::string& fault);
  void note(const std::string& sentence);
  bool is_right(const std::string& member, const Plan& plan);

  const Problem& problem_;
  Control& control_;
  std::shared_ptr<Exchange> exchange_;
  std::atomic<double> longest_check_;
  double step_;  // of the values that a latency can have
  std::atomic<bool> proved_infeasible_ = false;
  std::atomic<bool> bound_taken_ = false;
  mutable std::mutex mutex_;  // for all below, and the control's notes
  Certificate certificate_;
  std::vector<std::string> reasons_;  // why members have no plan
  std::string proof_;                 // why there is none
  std::string wrong_plan_;            // what was wrong with the first one; empty: none was
};

}  // namespace placewright
