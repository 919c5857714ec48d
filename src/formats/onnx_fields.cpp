#include "formats/onnx_fields.h"

#include <protozero/pbf_reader.hpp>

namespace placewright::onnx {

std::vector<Field> fields_of(std::string_view message) {
  std::vector<Field> fields;
  protozero::pbf_reader reader(message.data(), message.size());
  const char* begin = message.data();
  while (reader.next()) {
    Field field{.number = reader.tag(), .value = {}, .bytes = {}};
    if (reader.has_wire_type(protozero::pbf_wire_type::length_delimited)) {
      const protozero::data_view value = reader.get_view();
      field.value = {value.data(), value.size()};
    } else {
      reader.skip();
    }
    const char* end = reader.data().data();
    field.bytes = {begin, static_cast<std::size_t>(end - begin)};
    begin = end;
    fields.push_back(field);
  }
  return fields;
}

std::string text_in(std::string_view message, protozero::pbf_tag_type number) {
  std::string_view text;
  for (const Field& field : fields_of(message)) {
    if (field.number == number) text = field.value;
  }
  return std::string{text};
}

std::optional<long> whole_in(std::string_view message, protozero::pbf_tag_type number) {
  std::optional<long> whole;
  protozero::pbf_reader reader(message.data(), message.size());
  while (reader.next()) {
    if (reader.tag() == number && reader.has_wire_type(protozero::pbf_wire_type::varint)) {
      whole = reader.get_int64();
    } else {
      reader.skip();
    }
  }
  return whole;
}

}  // namespace placewright::onnx
