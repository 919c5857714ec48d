#include "cli/table.h"

#include <algorithm>
#include <cstdio>
#include <limits>
#include <numeric>

#include "cli/terminal.h"
#include "cli/text.h"

namespace placewright::cli {
namespace {

std::string padded(const std::string& cell, std::size_t width, Align align) {
  const std::string blanks(width - std::min(width, display_width(cell)), ' ');
  return align == Align::left ? cell + blanks : blanks + cell;
}

constexpr std::size_t kGap = 2;
constexpr std::size_t kLeastWidth = 8;  // names shorter than this are not cut

// The text in at most `width` columns, whole characters only.
std::string cut_to(const std::string& cell, std::size_t width) {
  if (display_width(cell) <= width) return cell;
  std::string head;
  std::size_t columns = 0;
  for (std::size_t i = 0; i < cell.size();) {
    std::size_t next = i + 1;
    while (next < cell.size() && (static_cast<unsigned char>(cell[next]) & 0xC0U) == 0x80U) ++next;
    const std::string character = cell.substr(i, next - i);
    columns += display_width(character);
    if (columns + 1 > width) break;
    head += character;
    i = next;
  }
  return head + "…";
}

// Takes from the widest column of names until the line fits.
void fit(std::vector<std::size_t>& widths, const std::vector<Column>& columns, std::size_t room) {
  std::size_t total = std::accumulate(widths.begin(), widths.end(), kGap * (widths.size() - 1));
  while (total > room) {
    std::size_t widest = widths.size();
    for (std::size_t i = 0; i < widths.size(); ++i) {
      if (columns[i].align == Align::right || widths[i] <= kLeastWidth) continue;
      if (widest == widths.size() || widths[i] > widths[widest]) widest = i;
    }
    if (widest == widths.size()) return;
    --widths[widest];
    --total;
  }
}

}  // namespace

void TextTable::add(const std::vector<std::string>& cells) {
  std::vector<std::string> row;
  for (const std::string& cell : cells) row.push_back(printable(cell));
  row.resize(columns_.size());
  rows_.push_back(std::move(row));
}

std::string TextTable::text(std::size_t indent) const {
  const int width = terminal_width(stdout, 0);
  return text(indent, width > 0 ? static_cast<std::size_t>(width)
                                : std::numeric_limits<std::size_t>::max());
}

std::string TextTable::text(std::size_t indent, std::size_t width) const {
  std::vector<std::string> titles;
  std::vector<std::size_t> widths;
  for (const Column& column : columns_) {
    titles.push_back(printable(column.title));
    widths.push_back(display_width(titles.back()));
  }
  for (const auto& row : rows_) {
    for (std::size_t i = 0; i < row.size(); ++i) {
      widths[i] = std::max(widths[i], display_width(row[i]));
    }
  }
  fit(widths, columns_, width - std::min(width, indent));
  std::string text;
  const auto append = [&](const std::vector<std::string>& row) {
    std::string line(indent, ' ');
    for (std::size_t i = 0; i < row.size(); ++i) {
      if (i > 0) line += "  ";
      line += padded(cut_to(row[i], widths[i]), widths[i], columns_[i].align);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  };
  append(titles);
  for (const auto& row : rows_) append(row);
  return text;
}

}  // namespace placewright::cli
