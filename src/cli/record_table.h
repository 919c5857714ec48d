// Records as text and as JSON, both from one list of fields, so that neither can forget what the
// other shows.
//
//   const RecordTable<Stage> stages({
//       {"load", "load", time_in(problem.unit()), [](const Stage& stage) { return stage.load; }},
//       {"bytes", kNoTitle, size(), [](const Stage& stage) { return stage.bytes; }},
//       {kNoKey, "first op", words(), [](const Stage& stage) { return first_op(stage); }},
//   });
//   fmt::print("{}", stages.text(plan.stages));       a line for each record
//   document["stages"] = stages.json(plan.stages);    an object for each record
//
// A field's value is what JSON has; its style makes the text from it. Numbers without limit are
// null in JSON.

#pragma once

#include <concepts>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cli/table.h"
#include "formats/plan_rows.h"
#include "formats/printable.h"
#include "problem/time_unit.h"

namespace placewright::cli {

// How text shows a value.
struct Style {
  Align align;
  std::function<std::string(const nlohmann::ordered_json&)> text;
};

// Strings; lists of them with commas; "yes" or "no"; "-" for null.
Style words(Align align = Align::left);
Style count();
Style time_in(TimeUnit unit);           // as value_text
Style percent();                        // of a fraction
Style duration();                       // of seconds
Style size();                           // of bytes
Style number(const std::string& form);  // as fmt's "{:.3g}"; "-" for null
// `form` of the number times `factor`: "{:.3g} us" of seconds.
Style scaled(double factor, const std::string& form);

// "title             text", the texts of such lines below each other.
std::string titled_line(const std::string& title, const std::string& text, std::size_t indent = 0);

// Strings as they are, numbers with all their digits, nothing for null.
std::string csv_cell(const nlohmann::ordered_json& value);

// Null for a number that is not finite.
nlohmann::ordered_json without_infinity(nlohmann::ordered_json value);

inline constexpr std::nullopt_t kNoKey = std::nullopt;    // in the text alone
inline constexpr std::nullopt_t kNoTitle = std::nullopt;  // in JSON alone

template <class Record>
struct Field {
  std::optional<std::string> key;
  std::optional<std::string> title;
  Style style;
  std::function<nlohmann::ordered_json(const Record&)> value;
};

template <class Record>
class RecordTable {
 public:
  using Json = nlohmann::ordered_json;

  explicit RecordTable(std::vector<Field<Record>> fields) : fields_(std::move(fields)) {}

  template <class Records>
  [[nodiscard]] std::string text(const Records& records, std::size_t indent = 0) const {
    std::vector<Column> columns;
    for (const auto& field : fields_) {
      if (field.title) columns.push_back({*field.title, field.style.align});
    }
    TextTable table(std::move(columns));
    for (const Record& record : records) {
      std::vector<std::string> cells;
      for (const auto& field : fields_) {
        if (field.title) cells.push_back(field.style.text(field.value(record)));
      }
      table.add(cells);
    }
    return table.text(indent);
  }

  // Comma-separated values: the keys, then a line for each record; what is null is empty.
  template <class Records>
  [[nodiscard]] std::string csv(const Records& records) const {
    PlanRows rows;
    for (const auto& field : fields_) {
      if (field.key) rows.titles.push_back(*field.key);
    }
    for (const Record& record : records) {
      auto& cells = rows.rows.emplace_back();
      for (const auto& field : fields_) {
        if (field.key) cells.push_back(csv_cell(without_infinity(field.value(record))));
      }
    }
    return csv_text(rows);
  }

  // One record with a line for each field: the title, then the text.
  [[nodiscard]] std::string lines(const Record& record) const {
    std::string lines;
    for (const auto& field : fields_) {
      if (!field.title) continue;
      lines += titled_line(*field.title, printable(field.style.text(field.value(record))));
    }
    return lines;
  }

  [[nodiscard]] Json json(const Record& record) const {
    Json object = Json::object();
    for (const auto& field : fields_) {
      if (field.key) object[*field.key] = without_infinity(field.value(record));
    }
    return object;
  }

  template <class Records>
  requires(!std::same_as<Records, Record>) [[nodiscard]] Json json(const Records& records) const {
    Json array = Json::array();
    for (const Record& record : records) array.push_back(json(record));
    return array;
  }

 private:
  std::vector<Field<Record>> fields_;
};

}  // namespace placewright::cli
