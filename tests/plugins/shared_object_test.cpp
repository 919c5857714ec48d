#include "plugins/shared_object.h"

#include <fstream>
#include <sstream>

#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "support/folder.h"
#include "support/locations.h"
#include "support/program.h"
#include "support/published.h"

namespace placewright {
namespace {

using testing::Folder;
using ::testing::HasSubstr;

std::string bytes_of(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

TEST(SharedObject, OpensAWholeOne) {
  const SharedObject opened =
      open_shared_object(testing::plugin_path("toy"), RTLD_NOW | RTLD_LOCAL);
  EXPECT_NE(opened.handle, nullptr) << opened.error;
}

// dlopen maps the file, and an access behind its end is a signal (SIGBUS).
TEST(SharedObject, RefusesOneThatIsCutOffAnywhere) {
  const Folder folder;
  const std::string whole = bytes_of(testing::plugin_path("toy"));
  for (std::size_t part = 0; part < 40; ++part) {
    const std::string path = folder.write("cut.so", whole.substr(0, whole.size() * part / 40));
    const SharedObject opened = open_shared_object(path, RTLD_NOW | RTLD_LOCAL);
    EXPECT_EQ(opened.handle, nullptr) << part;
    EXPECT_THAT(opened.error, HasSubstr("cut.so is ")) << part;
  }
}

TEST(SharedObject, RefusesWhatIsNone) {
  const Folder folder;
  const auto error = [&](const std::string& text) {
    return open_shared_object(folder.write("x.so", text), RTLD_NOW).error;
  };
  EXPECT_THAT(error(std::string(1000, 'x')), HasSubstr("is not a shared object"));
  EXPECT_THAT(error(""), HasSubstr("is too short"));
  std::string other = bytes_of(testing::plugin_path("toy"));
  other[4] = 1;  // of a machine with 32 bits
  EXPECT_THAT(error(other), HasSubstr("another kind of machine"));
  EXPECT_THAT(open_shared_object(folder.file(""), RTLD_NOW).error, HasSubstr("is not a file"));
  EXPECT_THAT(open_shared_object("/dev/zero", RTLD_NOW).error, HasSubstr("is not a file"));
  EXPECT_NE(open_shared_object("libno_such_library.so", RTLD_NOW).error, "");
}

TEST(SharedObject, EveryPluginOfTheProgramIsChecked) {
  const Folder folder;
  const std::string cut =
      folder.write("cut.so", bytes_of(testing::plugin_path("toy")).substr(0, 5000));
  for (const char* variable :
       {"PLACEWRIGHT_OPENVINO_PLUGIN", "PLACEWRIGHT_LEARNED_PLUGIN", "PLACEWRIGHT_ORTOOLS_LIB"}) {
    ASSERT_EQ(setenv(variable, cut.c_str(), 1), 0);
    const std::string problem = testing::example_path("moirai/example-1.json");
    for (const std::vector<std::string>& words :
         {std::vector<std::string>{"devices"},
          {"plan", problem, "--planner", "hsdag", "--time-limit", "1s"},
          {"plan", problem, "--planner", "cpsat", "--time-limit", "1s"}}) {
      EXPECT_LE(testing::run(words).exit_code, 4) << variable << ' ' << words.front();
    }
    unsetenv(variable);
  }
}

}  // namespace
}  // namespace placewright
