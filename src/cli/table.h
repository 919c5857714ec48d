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

  // One cell for each column. Cells and titles are shown as `printable` gives them.
  void add(const std::vector<std::string>& cells);

  // The titles and the rows, each line with `indent` blanks before it. On a terminal lines fit its
  // width: the widest columns of names are cut, with "…" for what is missing.
  [[nodiscard]] std::string text(std::size_t indent = 0) const;
  // The same for a given width; numbers (columns aligned to the right) are never cut, so that a
  // very narrow table may still be too wide.
  [[nodiscard]] std::string text(std::size_t indent, std::size_t width) const;

 private:
  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace placewright::cli
