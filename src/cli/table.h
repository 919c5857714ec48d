// A table of text with aligned columns, two blanks between them.

#pragma once

#include <string>
#include <vector>

namespace placewright::cli {

enum class Align { left, right };

struct Column {
  std::string title;
  Align align = Align::left;
};

class TextTable {
 public:
  explicit TextTable(std::vector<Column> columns) : columns_(std::move(columns)) {}

  // One cell for each column. Cells are shown as they are, less control characters.
  void add(const std::vector<std::string>& cells);

  // The titles and the rows, each line with `indent` blanks before it.
  [[nodiscard]] std::string text(std::size_t indent = 0) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace placewright::cli
