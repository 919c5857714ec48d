#include "zoo/zoo.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <set>
#include <stdexcept>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/input_error.h"
#include "formats/text_file.h"
#include "support/folder.h"
#include "support/program.h"

namespace placewright {
namespace {

using ::testing::AllOf;
using testing::Folder;
using ::testing::HasSubstr;
using testing::run;

const ZooEntry& entry_named(const std::string& name) {
  for (const ZooEntry& entry : zoo_entries()) {
    if (entry.name == name) return entry;
  }
  throw std::invalid_argument(name);
}

// A model's weights are its bytes that another seed changes.
std::size_t values_that_differ(const std::string& one, const std::string& other) {
  std::size_t count = 0;
  for (std::size_t i = 0; i + 4 <= one.size(); i += 4) {
    if (std::memcmp(one.data() + i, other.data() + i, 4) != 0) ++count;
  }
  return count;
}

TEST(Zoo, HoldsTheModelsOfThePapers) {
  std::set<std::string> names;
  for (const ZooEntry& entry : zoo_entries()) {
    EXPECT_TRUE(names.insert(entry.name).second) << entry.name;
    EXPECT_GT(entry.ops, 10U) << entry.name;
    EXPECT_GE(entry.bytes, 4 * entry.parameters) << entry.name;
    EXPECT_FALSE(entry.inputs.empty()) << entry.name;
    EXPECT_FALSE(entry.source.empty() || entry.licence.empty()) << entry.name;
  }
  for (const char* name : {"alexnet", "bninception", "squeezenet", "resnet50", "inceptionv3",
                           "inceptionv4", "bert-base", "gpt2", "swin-t"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(Zoo, TheSameSeedGivesTheSameBytesOnEveryMachine) {
  const ZooModel model = zoo_model("tiny-bert");
  EXPECT_EQ(model.weights.size(), entry_named("tiny-bert").bytes);
  EXPECT_EQ(model.weights, zoo_model("tiny-bert", kZooSeed).weights);
  EXPECT_EQ(digest_of(model.weights),
            "877ba328d8c996a30b089be8dd0b2e861aa72a9dcf62c54f0ee638f9ddab969e");
}

TEST(Zoo, AnotherSeedChangesTheWeightsAndNothingElse) {
  for (const char* name : {"tiny-branches", "tiny-pair", "tiny-bert", "squeezenet"}) {
    const ZooModel one = zoo_model(name, 1);
    const ZooModel other = zoo_model(name, 2);
    EXPECT_EQ(one.xml, other.xml);
    ASSERT_EQ(one.weights.size(), other.weights.size());
    const std::size_t parameters = entry_named(name).parameters;
    const std::size_t differ = values_that_differ(one.weights, other.weights);
    EXPECT_LE(differ, parameters) << name;
    EXPECT_GT(static_cast<double>(differ), 0.999 * static_cast<double>(parameters)) << name;
  }
}

TEST(Zoo, WeightsHaveTheSpreadThatTheirLayerAsksFor) {
  // The weights of tiny-branches begin with the stem: 16 x 3 x 3 x 3 values before a rectifier.
  const ZooModel model = zoo_model("tiny-branches");
  double sum = 0;
  double squares = 0;
  constexpr std::size_t kCount = 16 * 27;
  for (std::size_t i = 0; i < kCount; ++i) {
    float value = 0;
    std::memcpy(&value, model.weights.data() + 4 * i, 4);
    sum += value;
    squares += double{value} * value;
  }
  const double expected = std::sqrt(2.0 / 27.0);
  EXPECT_NEAR(sum / kCount, 0, 4 * expected / std::sqrt(double{kCount}));
  EXPECT_NEAR(std::sqrt(squares / kCount), expected, 0.15 * expected);
}

TEST(Zoo, WritesAPairOfFilesIntoAFolderThatItMakes) {
  const Folder folder;
  const auto files = make_zoo_model("tiny-pair", folder.file("models/small"));
  EXPECT_EQ(files.xml, folder.file("models/small/tiny-pair.xml"));
  const ZooModel model = zoo_model("tiny-pair");
  EXPECT_EQ(folder.read("models/small/tiny-pair.xml"), model.xml);
  EXPECT_EQ(folder.read("models/small/tiny-pair.bin"), model.weights);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.file("models/small")), {}), 2);
}

TEST(Zoo, TellsWhatIsWrong) {
  const Folder folder;
  EXPECT_THROW(zoo_model("resnet"), std::invalid_argument);
  EXPECT_THROW(make_zoo_model("tiny-pair", folder.write("taken", "")), OutputError);
}

TEST(ZooVerb, ListsTheModels) {
  const auto table = run({"zoo", "list"});
  ASSERT_EQ(table.exit_code, 0) << table.err;
  EXPECT_THAT(table.out, AllOf(HasSubstr("inceptionv3"), HasSubstr("Inception-V3")));
  const auto document = run({"zoo", "list", "--json"}).json();
  EXPECT_EQ(document.size(), zoo_entries().size());
  EXPECT_EQ(document[0]["inputs"][0]["shape"], nlohmann::json({1, 3, 32, 32}));
}

TEST(ZooVerb, MakesModelsFromASeed) {
  const Folder folder;
  const auto made =
      run({"zoo", "make", "tiny-pair", "tiny-branches", "--seed", "9", "-o", folder.file("m")});
  ASSERT_EQ(made.exit_code, 0) << made.err;
  EXPECT_THAT(made.out, HasSubstr("tiny-branches.xml: 24 ops"));
  EXPECT_EQ(folder.read("m/tiny-pair.bin"), zoo_model("tiny-pair", 9).weights);
  EXPECT_EQ(folder.read("m/tiny-branches.xml"), zoo_model("tiny-branches").xml);
}

TEST(ZooVerb, OneWrongNameOfSeveralLeavesNothingHalfDone) {
  const Folder folder;
  const auto wrong = run({"zoo", "make", "tiny-pair", "resnet51", "-o", folder.file("m")});
  EXPECT_EQ(wrong.exit_code, 2);
  EXPECT_THAT(wrong.err, HasSubstr("no model of the zoo is called 'resnet51': did you mean "
                                   "'resnet50'?"));
  EXPECT_EQ(folder.file_count(), 0U);
}

TEST(ZooVerb, WrongUsageIsTold) {
  EXPECT_EQ(run({"zoo"}).exit_code, 2);
  EXPECT_EQ(run({"zoo", "make"}).exit_code, 2);
  EXPECT_EQ(run({"zoo", "list", "gpt2"}).exit_code, 2);
  const auto task = run({"zoo", "mak", "gpt2"});
  EXPECT_EQ(task.exit_code, 2);
  EXPECT_THAT(task.err, HasSubstr("did you mean 'make'?"));
  EXPECT_EQ(run({"zoo", "make", "tiny-pair", "--seed", "soon"}).exit_code, 2);
}

TEST(ZooVerb, AFolderThatCannotBeMadeIsBadInput) {
  const Folder folder;
  const auto made = run({"zoo", "make", "tiny-pair", "-o", folder.write("taken", "") + "/m"});
  EXPECT_EQ(made.exit_code, 3);
  EXPECT_THAT(made.err, HasSubstr("cannot be made"));
}

}  // namespace
}  // namespace placewright
