#include "formats/arrival_rows.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <filesystem>
#include <map>
#include <optional>

#include <fmt/format.h>

#include "formats/input_error.h"
#include "problem/largest_number.h"

namespace placewright {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.back() == ' ' || text.back() == '\r')) text.remove_suffix(1);
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  return text;
}

std::vector<std::string_view> cells_of(std::string_view line) {
  std::vector<std::string_view> cells;
  for (std::size_t begin = 0; begin <= line.size();) {
    const std::size_t end = std::min(line.find(',', begin), line.size());
    cells.push_back(trimmed(line.substr(begin, end - begin)));
    begin = end + 1;
  }
  return cells;
}

// The file, line by line.
class RowReader {
 public:
  RowReader(std::string_view text, std::string path) : text_(text), path_(std::move(path)) {}

  // The next line that is not empty.
  bool next() {
    while (begin_ < text_.size()) {
      const std::size_t end = std::min(text_.find('\n', begin_), text_.size());
      const std::string_view line = trimmed(text_.substr(begin_, end - begin_));
      begin_ = end + 1;
      ++number_;
      if (line.empty()) continue;
      cells_ = cells_of(line);
      return true;
    }
    return false;
  }

  void read_titles() {
    if (!next()) fail("there are no arrivals");
    for (std::size_t i = 0; i < cells_.size(); ++i) {
      if (!columns_.emplace(std::string(cells_[i]), i).second) {
        fail(fmt::format("two columns are called '{}'", cells_[i]));
      }
    }
    for (const char* title : {"time", "model"}) {
      if (!columns_.contains(title)) fail(fmt::format("no column is called '{}'", title));
    }
  }

  // Empty where the line or the file has no such cell.
  [[nodiscard]] std::string_view cell(const std::string& title) const {
    const auto found = columns_.find(title);
    if (found == columns_.end() || found->second >= cells_.size()) return {};
    return cells_[found->second];
  }

  [[nodiscard]] std::optional<double> moment(const std::string& title) const {
    const std::string_view text = cell(title);
    if (text.empty()) return std::nullopt;
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool whole = error == std::errc{} && end == text.data() + text.size();
    if (!whole || !(value >= 0) || value > kLargestNumber) {
      fail(fmt::format("{}: expected milliseconds, found '{}'", title, text));
    }
    return value;
  }

  [[noreturn]] void fail(const std::string& message) const {
    throw InputError(path_, fmt::format("line {}", number_), message);
  }

 private:
  std::string_view text_;
  std::string path_;
  std::size_t begin_ = 0;
  std::size_t number_ = 0;
  std::vector<std::string_view> cells_;
  std::map<std::string, std::size_t> columns_;
};

}  // namespace

bool is_arrival_rows(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  return first != std::string_view::npos && text[first] != '{' && text[first] != '[';
}

ArrivalTrace parse_arrival_rows(std::string_view text, const std::string& path) {
  RowReader rows(text, path);
  rows.read_titles();
  ArrivalTrace trace{.name = std::filesystem::path(path).stem().string(), .arrivals = {}};
  std::map<std::string, int> copies;
  while (rows.next()) {
    TraceArrival& arrival = trace.arrivals.emplace_back();
    arrival.model = rows.cell("model");
    if (arrival.model.empty()) rows.fail("model: there is none");
    const std::optional<double> time = rows.moment("time");
    if (!time) rows.fail("time: there is none");
    arrival.time = *time;
    arrival.deadline = rows.moment("deadline");
    arrival.cancelled = rows.moment("cancelled");
    if (arrival.cancelled && *arrival.cancelled < *time) {
      rows.fail("cancelled: before it arrives");
    }
    arrival.name = fmt::format("{} {}", arrival.model, ++copies[arrival.model]);
  }
  if (trace.arrivals.empty()) rows.fail("there are no arrivals");
  std::ranges::stable_sort(trace.arrivals, {}, &TraceArrival::time);
  return trace;
}

}  // namespace placewright
