// Lists of fields: what is read is what is written, and what a list leaves out is told.

#include "formats/json_fields.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "formats/input_error.h"

namespace placewright {

enum class Colour { red, dark_blue };
template <>
inline constexpr auto kSpellings<Colour> =
    std::to_array<Spelling<Colour>>({{Colour::red, "red"}, {Colour::dark_blue, "dark-blue"}});

struct Leaf {
  std::string name;
  double size = 1;

  friend bool operator==(const Leaf&, const Leaf&) = default;
};

struct Tree {
  std::string name;
  Colour colour = Colour::red;
  bool tall = false;
  int trunks = 1;
  double height = 0;
  double limit = 100;
  std::optional<double> age;
  std::vector<Leaf> leaves;
  std::map<std::string, std::string> notes;
  double doubled = 0;

  friend bool operator==(const Tree&, const Tree&) = default;
};

struct Doubled {};

template <>
inline constexpr auto kFields<Leaf> =
    std::tuple{required("name", &Leaf::name), optional("size", &Leaf::size)};

template <>
inline constexpr auto kFields<Tree> =
    std::tuple{required("name", &Tree::name).or_fail("a tree has a name"),
               optional("colour", &Tree::colour),
               optional("tall", &Tree::tall),
               optional("trunks", &Tree::trunks),
               stated("height", &Tree::height),
               optional("limit", &Tree::limit).or_null(),
               optional("age", &Tree::age).or_null(),
               optional("leaves", &Tree::leaves).on_line().in(Lines::bracket_below),
               optional("notes", &Tree::notes),
               optional("doubled", &Tree::doubled, Doubled{})};

namespace {

// A number that stands in the file as twice itself.
struct Reading : ReadingContext {
  void read(Doubled, JsonValue json, Tree& tree) { tree.doubled = json.amount() / 2; }
};
struct Writing {
  void append(Doubled, std::string& text, const Tree& tree) const {
    append_number(text, 2 * tree.doubled);
  }
};

std::string written(const Tree& tree, Written which = Written::unusual) {
  std::string text;
  append_record(text, tree, Writing{}, which);
  return text;
}

Tree read(const std::string& text, Reading context = {}) {
  const JsonDocument document(text, "tree.json");
  Tree tree;
  read_record(document.root(), tree, context);
  return tree;
}

std::string complaint(const std::string& text) {
  try {
    (void)read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "none";
}

TEST(JsonFields, WritesWhatDiffersFromTheDefaults) {
  EXPECT_EQ(written({.name = "oak"}), R"({"name": "oak", "height": 0})");
}

TEST(JsonFields, WritesEverythingWhenAsked) {
  EXPECT_EQ(written({.name = "oak"}, Written::all),
            R"({"name": "oak", "colour": "red", "tall": false, "trunks": 1, "height": 0, )"
            R"("limit": 100, "age": null,)"
            "\n"
            R"("leaves": [)"
            "\n"
            R"(], "notes": {}, "doubled": 0})");
}

TEST(JsonFields, ReadsWhatItWrote) {
  const Tree tree{.name = "oak",
                  .colour = Colour::dark_blue,
                  .tall = true,
                  .trunks = 3,
                  .height = 4.5,
                  .limit = 7,
                  .age = 12,
                  .leaves = {{"left", 2}, {"right"}},
                  .notes = {{"a", "b"}, {"c", "d"}},
                  .doubled = 5};
  EXPECT_EQ(written(tree),
            R"({"name": "oak", "colour": "dark-blue", "tall": true, "trunks": 3, "height": 4.5, )"
            R"("limit": 7, "age": 12,)"
            "\n"
            R"("leaves": [)"
            "\n"
            R"({"name": "left", "size": 2},)"
            "\n"
            R"({"name": "right"})"
            "\n"
            R"(], "notes": {"a": "b", "c": "d"}, "doubled": 10})");
  EXPECT_EQ(read(written(tree)), tree);
}

TEST(JsonFields, TakesNullForAbsentOnlyWhereTheListSaysSo) {
  EXPECT_EQ(read(R"({"name": "oak", "limit": null, "age": null})"), Tree{.name = "oak"});
  EXPECT_THAT(complaint(R"({"name": "oak", "height": null})"),
              testing::HasSubstr("/height: expected a number, found null"));
}

TEST(JsonFields, TellsWhatIsMissing) {
  EXPECT_THAT(complaint("{}"), testing::HasSubstr("a tree has a name"));
  EXPECT_THAT(complaint(R"({"name": "oak", "leaves": [{}]})"),
              testing::HasSubstr("/leaves/0: the key 'name' is missing"));
}

TEST(JsonFields, CollectsKeysThatNoListHas) {
  const JsonDocument document(R"({"name": "oak", "bark": 1, "leaves": [{"name": "x", "y": 2}]})",
                              "tree.json");
  Tree tree;
  Reading context;
  read_record(document.root(), tree, context);
  EXPECT_THAT(context.unknown.warnings(),
              testing::ElementsAre(testing::HasSubstr("/bark"), testing::HasSubstr("/leaves/0/y")));
}

}  // namespace
}  // namespace placewright
