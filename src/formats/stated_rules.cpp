#include "formats/stated_rules.h"

namespace placewright {

StatedRules::StatedRules(JsonValue object) {
  ReadingContext context;
  read_record(object, rules_, context);
  const auto keys = keys_of(kFields<Rules>);
  for (std::size_t i = 0; i < keys.size(); ++i) stated_[i] = object.find(keys[i]).has_value();
}

Rules StatedRules::over(Rules others) const {
  std::size_t next = 0;
  const auto lay = [&](const auto& field) {
    if (stated_[next++]) std::invoke(field.member, others) = std::invoke(field.member, rules_);
  };
  std::apply([&](const auto&... field) { (lay(field), ...); }, kFields<Rules>);
  return others;
}

}  // namespace placewright
