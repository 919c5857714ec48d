#include "report/training_page.h"

#include <algorithm>
#include <limits>

#include <fmt/format.h>

#include "report/line_chart.h"
#include "report/markup.h"

namespace placewright {
namespace {

constexpr std::size_t kMostPoints = 40;

// Means over stretches of equal length; a stretch without a value is a gap.
std::vector<ChartPoint> smoothed(std::span<const TrainingPoint> points,
                                 double TrainingPoint::*member) {
  std::vector<ChartPoint> curve;
  const std::size_t stretch = std::max<std::size_t>(1, points.size() / kMostPoints);
  for (std::size_t begin = 0; begin < points.size(); begin += stretch) {
    const auto part = points.subspan(begin, std::min(stretch, points.size() - begin));
    double sum = 0;
    double count = 0;
    for (const TrainingPoint& point : part) {
      if (point.*member <= 0) continue;
      sum += point.*member;
      ++count;
    }
    curve.push_back(
        {part.back().episode, count > 0 ? sum / count : std::numeric_limits<double>::quiet_NaN()});
  }
  return curve;
}

LineChart chart(std::string title, std::string line, std::vector<ChartPoint> points) {
  LineChart made;
  made.title = std::move(title);
  made.x_title = "episode";
  made.lines = {ChartLine{std::move(line), std::move(points)}};
  return made;
}

}  // namespace

std::string training_page(const std::string& title, std::span<const TrainingPoint> points) {
  const std::vector<LineChart> charts = {chart("Reward: best single device / mean of the samples",
                                               "reward", smoothed(points, &TrainingPoint::reward)),
                                         chart("Best value so far / lower bound", "best / bound",
                                               smoothed(points, &TrainingPoint::best_over_bound)),
                                         chart("Entropy of a decision, of the largest", "entropy",
                                               smoothed(points, &TrainingPoint::entropy))};
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{0}</title></head>\n"
      "<body style=\"font-family: sans-serif; margin: 2rem\"><h1>{0}</h1>\n{1}\n</body></html>\n",
      markup_text(title), svg_text(charts));
}

}  // namespace placewright
