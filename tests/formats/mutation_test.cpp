// Damaged files: whatever happens to the bytes, reading gives a problem or an InputError.

#include <random>
#include <string>

#include <gtest/gtest.h>

#include "formats/cluster_file.h"
#include "formats/input_error.h"
#include "formats/plan_file.h"
#include "formats/problem_file.h"
#include "formats/text_file.h"
#include "support/published.h"

namespace placewright {
namespace {

using testing::example_path;

class Damage {
 public:
  explicit Damage(unsigned seed) : random_(seed) {}

  std::string damaged(std::string text) {
    const std::size_t times = 1 + random_() % 3;
    for (std::size_t i = 0; i < times && !text.empty(); ++i) damage(text);
    return text;
  }

 private:
  std::size_t place(const std::string& text) { return random_() % (text.size() + 1); }

  void damage(std::string& text) {
    static const std::vector<std::string> kPieces = {
        "null", "-1",  "1e999", "\"\"", "[]",  "{}",     "NaN",  "true", "0",
        "99",   "]",   "}",     ",",    ":",   "\"",     "1e-5", "[[",   "\xff\xfe",
        "\\u0", "3.5", "-0",    "1e9",  "[0,", "\"id\"", "\n"};
    const std::size_t at = place(text);
    const std::size_t length = std::min<std::size_t>(text.size() - at, random_() % 30);
    switch (random_() % 6) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, text.substr(place(text), random_() % 60));
        break;
      case 3:
        text.insert(at, kPieces[random_() % kPieces.size()]);
        break;
      case 4:
        replace_a_value(text, at, kPieces[random_() % kPieces.size()]);
        break;
      default:
        if (at < text.size()) text[at] = static_cast<char>(random_());
    }
  }

  // Keeps the text well-formed, to get behind the parser.
  static void replace_a_value(std::string& text, std::size_t at, const std::string& piece) {
    const std::size_t begin = text.find_first_of("0123456789", at);
    if (begin == std::string::npos) return;
    std::size_t end = text.find_first_not_of("0123456789.e+-", begin);
    if (end == std::string::npos) end = text.size();
    text.replace(begin, end - begin, piece);
  }

  std::mt19937 random_;
};

struct Outcome {
  int accepted = 0;
  int refused = 0;
};

template <class Read>
Outcome read_damaged(const std::string& text, unsigned seed, int times, Read read) {
  Damage damage(seed);
  Outcome outcome;
  for (int i = 0; i < times; ++i) {
    const std::string damaged = damage.damaged(text);
    try {
      read(damaged);
      ++outcome.accepted;
    } catch (const InputError& error) {
      ++outcome.refused;
      EXPECT_EQ(error.file(), "damaged.json");
      EXPECT_FALSE(error.message().empty());
    }
  }
  return outcome;
}

TEST(DamagedFiles, AreReadOrRefused) {
  Outcome total;
  unsigned seed = 11;
  for (const std::string name :
       {"moirai/example-1.json", "talos/six_ops.json", "talos/two_chains.json",
        "msr/throughput/LayerGraphs/bert24_training.json"}) {
    const ProblemDraft draft = read_problem(example_path(name)).draft;
    for (const std::string& text : {read_whole(example_path(name)), write_problem(draft)}) {
      const Outcome outcome = read_damaged(text, seed++, 400, [](const std::string& damaged) {
        (void)build_problem(parse_problem(damaged, "damaged.json"));
      });
      total.accepted += outcome.accepted;
      total.refused += outcome.refused;
    }
  }
  // Both ends were exercised.
  EXPECT_GT(total.accepted, 100);
  EXPECT_GT(total.refused, 1000);
}

TEST(DamagedFiles, ClustersAndPlansToo) {
  const ProblemFile file =
      read_problem(example_path("msr/throughput/LayerGraphs/bert24_training.json"));
  const Problem problem = build_problem(file);
  read_damaged(write_cluster(file.draft.cluster), 1, 300,
               [](const std::string& damaged) { (void)parse_cluster(damaged, "damaged.json"); });
  read_damaged(read_whole(example_path("msr/human-experts/bert24_training_expert.json")), 2, 300,
               [&](const std::string& damaged) {
                 (void)PlanDocument(damaged, "damaged.json").read(problem, file.op_ids);
               });

  PlanFile plan;
  plan.plan.placement = Placement(problem.op_count(), DeviceId{0});
  plan.plan.stages = {{{DeviceId{0}}, {OpId{0}}, 1}};
  plan.plan.calls = {{DeviceId{0}, {OpId{0}}, 0, 1}};
  Schedule schedule;
  schedule.start.assign(problem.op_count(), 0);
  schedule.end.assign(problem.op_count(), 1);
  schedule.transfers = {{TensorId{0}, Leg::out, DeviceId{0}, {}, 0, 1}};
  plan.plan.schedule = schedule;
  plan.status = Status::feasible;
  for (const bool embed : {false, true}) {
    read_damaged(write_plan(problem, plan, {.embed = embed}), 3, 500,
                 [&](const std::string& damaged) {
                   (void)PlanDocument(damaged, "damaged.json").reference();
                   (void)PlanDocument(damaged, "damaged.json").read(problem);
                 });
  }
}

TEST(DamagedFiles, RandomBytesAreRefused) {
  std::mt19937 random(5);
  for (int i = 0; i < 3000; ++i) {
    std::string bytes(random() % 200, ' ');
    for (char& byte : bytes) byte = static_cast<char>(random());
    if (i % 2 == 0) bytes = "{\"nodes\": [" + bytes;
    EXPECT_THROW(parse_problem(bytes, "random.json"), InputError);
  }
}

}  // namespace
}  // namespace placewright
