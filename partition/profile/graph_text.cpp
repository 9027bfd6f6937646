#include "partition/profile/graph_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <string_view>

#include "framework/error.h"
#include "partition/profile/decimal.h"
#include "partition/profile/json_text.h"

namespace antichain {
namespace {

using Field = GraphText::Field;
using enum GraphText::Field;

constexpr std::string_view separator = " -- ";
constexpr std::array<std::string_view, 5> field_names = {"forward_compute_time", "backward_compute_time",
                                                         "activation_size", "parameter_size", "stage_id"};

std::vector<std::string_view> split(std::string_view text, std::string_view between) {
  std::vector<std::string_view> parts;
  for (size_t end; (end = text.find(between)) != std::string_view::npos;) {
    parts.push_back(text.substr(0, end));
    text.remove_prefix(end + between.size());
  }
  parts.push_back(text);
  return parts;
}

// Returns the part of a text that an error sentence has room for.
std::string shown(std::string_view text) {
  return std::string(text.substr(0, 60)) + (text.size() > 60 ? "…" : "");
}

class Parser {
 public:
  Parser(std::string_view text, const std::string& origin) : origin_(origin) {
    for (std::string_view line : split(text, "\n")) {
      ++line_;
      read_line(line.substr(0, line.find_last_not_of(" \r") + 1));
    }
    if (read_.nodes.empty()) fail("there is no node line \"id -- description -- forward_compute_time=…, …\"");
  }

  GraphText take() { return std::move(read_); }

 private:
  [[noreturn]] void fail(const std::string& why) const { fail_in_line(origin_, line_, why); }

  void read_line(std::string_view line) {
    for (size_t i = 0; i < line.size(); ++i)
      if ((line[i] < ' ' || line[i] > '~') && !(i == 0 && line[i] == '\t'))
        fail(fmt::format("character {} is no printable ASCII", i + 1));
    if (line.empty()) return;
    if (line[0] == ' ') fail("the line starts with a space: edges are indented by a tab, nodes not at all");
    if (line[0] == '\t')
      read_edge(line.substr(1));
    else
      read_node(line);
  }

  void read_edge(std::string_view line) {
    const std::vector<std::string_view> ends = split(line, separator);
    if (ends.size() != 2) fail(fmt::format("\"{}\" is no edge \"id -- id\"", shown(line)));
    read_.edges.push_back({id(ends[0]), id(ends[1]), line_});
  }

  void read_node(std::string_view line) {
    const std::vector<std::string_view> parts = split(line, separator);
    if (parts.size() < 3)
      fail(fmt::format(
          "\"{}\" is no node \"id -- description -- forward_compute_time=…, …\"; perhaps the line is cut off",
          shown(line)));
    GraphText::Node node = {.id = id(parts[0]), .description = std::string(parts[1]), .line = line_};
    if (node.description.empty()) fail(fmt::format("{} has no description", node.id));
    for (size_t part = 2; part < parts.size(); ++part)
      for (std::string_view field : split(parts[part], ", ")) read_field(field, node);
    for (Field field : {forward_time, backward_time, activation_size, parameter_size})
      if (!node.fields[field])
        fail(fmt::format("{} has no {}; perhaps the line is cut off", node.id, field_names[field]));
    const auto [first, is_new] = line_of_.emplace(node.id, line_);
    if (!is_new) fail(fmt::format("the id {} is taken by line {}", node.id, first->second));
    read_.nodes.push_back(std::move(node));
  }

  void read_field(std::string_view text, GraphText::Node& node) {
    const size_t equals = text.find('=');
    const auto name = std::find(field_names.begin(), field_names.end(), text.substr(0, equals));
    if (equals == std::string_view::npos || name == field_names.end())
      fail(fmt::format("\"{}\" is no field of a node; known are {}", shown(text),
                       fmt::join(field_names, ", ")));
    const Field field = Field(name - field_names.begin());
    if (node.fields[field]) fail(fmt::format("{} has {} twice", node.id, *name));
    node.fields[field] =
        field == activation_size ? sizes(text.substr(equals + 1)) : amount(text.substr(equals + 1), field);
    if (field != stage_id && !total_[field <= backward_time ? 0 : field].add(*node.fields[field]))
      fail(fmt::format("{} of {} takes the sum over all nodes beyond {}", *name, node.id, limit(field)));
  }

  // Reads one size, or sums a list [a; b; c] of them.
  int64_t sizes(std::string_view text) const {
    if (!text.starts_with("[")) return amount(text, activation_size);
    if (!text.ends_with("]")) fail(fmt::format("the list \"{}\" has no end", shown(text)));
    Sum sum;
    int64_t total = 0;
    for (std::string_view one : split(text.substr(1, text.size() - 2), "; ")) {
      const int64_t size = amount(one, activation_size);
      if (!sum.add(size))
        fail(fmt::format("{} adds up to more than {}", shown(text), limit(activation_size)));
      total += size;
    }
    return total;
  }

  // Converts a time from milliseconds to nanoseconds and keeps a size in bytes. Fractions are rounded once.
  int64_t amount(std::string_view text, Field field) const {
    const std::optional<Decimal> number = decimal(text);
    if (!number) fail(fmt::format("{} is \"{}\", which is no number", field_names[field], shown(text)));
    if (number->negative && !number->digits.empty())
      fail(fmt::format("{} is {}, which is negative", field_names[field], shown(text)));
    const std::optional<int64_t> value = scaled(*number, field <= backward_time ? 6 : 0, most_of_all);
    if (!value) fail(fmt::format("{} is {}, more than {}", field_names[field], shown(text), limit(field)));
    return *value;
  }

  static std::string limit(Field field) {
    return field <= backward_time ? fmt::format("{} days", most_of_all / 86'400'000'000'000)
                                  : fmt::format("{} bytes", most_of_all);
  }

  std::string id(std::string_view text) const {
    if (text.empty()) fail("an id is missing");
    if (text.find_first_of(" \t,") != std::string_view::npos)
      fail(fmt::format("\"{}\" is no id: ids have no blanks and no commas", shown(text)));
    return std::string(text);
  }

  const std::string& origin_;
  GraphText read_;
  int line_ = 0;
  std::map<std::string, int> line_of_;
  std::array<Sum, 5> total_;
};

}  // namespace

void fail_in_line(const std::string& origin, int line, const std::string& why) {
  throw Error(fmt::format("{}:{}: {}", origin, line, why), "correct the file or profile again");
}

GraphText parse_graph_text(const std::string& text, const std::string& origin) {
  return Parser(text, origin).take();
}

}  // namespace antichain
