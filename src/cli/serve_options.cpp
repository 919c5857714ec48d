#include "cli/serve_options.h"

#include <functional>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/choice_option.h"
#include "cli/exit_code.h"
#include "cli/number_option.h"
#include "cli/repeated_option.h"

namespace placewright::cli {
namespace {

using Setter = std::function<void(ServiceClass& service, const std::string& value)>;

void set_each(std::vector<ServedModel>& models, std::string_view option,
              const std::vector<std::string>& texts, const Setter& set) {
  for (const std::string& text : texts) {
    const auto [name, value] = model_value(text);
    for (ServedModel* model : models_named(models, option, name)) set(model->service, value);
  }
}

}  // namespace

void ServiceOptions::add_to(CLI::App& verb) {
  add_choice(verb, "--policy", scheduler.policy, "How the server chooses the next request");
  add_choice(verb, "--late", scheduler.late,
             "Refuse a request that would miss its objective, or serve it after the others");
  add_number(verb, "--ageing", scheduler.ageing, {1, kLargestReal},
             "A request is aged when it has waited for this many times its own time");
  add_number(verb, "--share", scheduler.share, {0.001, 1},
             "Give aged requests at least this share of the time");
  add_repeated(verb, "--objective", objectives, "[MODEL=]TIME",
               "Latency objective, such as 30ms; --late says what happens to later requests");
  add_repeated(verb, "--priority", priorities, "[MODEL=]N",
               "Serve the model with the larger number first (0)");
  add_repeated(verb, "--weight", weights, "[MODEL=]X",
               "Count a model of weight 2 as half as long (1)");
  add_repeated(verb, "--queue", queues, "[MODEL=]N",
               "Let at most this many requests of a model wait (1000)");
}

void ServiceOptions::apply(std::vector<ServedModel>& models) const {
  set_each(models, "--objective", objectives, [](ServiceClass& service, const std::string& value) {
    service.objective = 1000 * parse_duration("--objective", value);
  });
  set_each(models, "--priority", priorities, [](ServiceClass& service, const std::string& value) {
    service.priority = parse_number("--priority", value, NumberRange<int>{-1000, 1000});
  });
  set_each(models, "--weight", weights, [](ServiceClass& service, const std::string& value) {
    service.weight = parse_number("--weight", value, NumberRange<double>{1e-6, 1e6});
  });
  set_each(models, "--queue", queues, [](ServiceClass& service, const std::string& value) {
    service.queue.requests =
        parse_number("--queue", value, NumberRange<std::uint64_t>{1, 1'000'000});
  });
}

ModelValue model_value(const std::string& text) {
  const std::size_t split = text.rfind('=');
  if (split == std::string::npos) return {"", text};
  return {text.substr(0, split), text.substr(split + 1)};
}

std::vector<ServedModel*> models_named(std::vector<ServedModel>& models, std::string_view option,
                                       const std::string& name) {
  std::vector<ServedModel*> found;
  std::vector<std::string> known;
  for (ServedModel& model : models) {
    known.push_back(model.name);
    if (name.empty() || model.name == name) found.push_back(&model);
  }
  if (found.empty()) {
    throw UsageError(fmt::format("{}: no model is called '{}', there is: {}", option, name,
                                 fmt::join(known, ", ")));
  }
  return found;
}

}  // namespace placewright::cli
