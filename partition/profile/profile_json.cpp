// Reads and writes profile.json. Each node has one line, so that two profiles can be compared by diff.
//
// Times are microseconds with three decimals. These are whole nanoseconds, which planners count in, so a
// profile gives the same plan before and after it was written to a file. Every other number is written with
// all digits.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <set>

#include "framework/json.h"
#include "partition/profile/json_text.h"
#include "partition/profile/profile.h"

namespace antichain {
namespace {

constexpr const char* profile_format = "antichain profile 1";

constexpr std::array<std::pair<Role, std::string_view>, 3> roles = {
    {{Role::input, "input"}, {Role::compute, "compute"}, {Role::loss, "loss"}}};

std::string_view role_name(Role role) {
  return std::find_if(roles.begin(), roles.end(), [&](const auto& entry) { return entry.first == role; })
      ->second;
}

Role role_of(const JsonReader& field) {
  std::string name = field.string();
  for (const auto& [role, known] : roles)
    if (known == name) return role;
  field.fail(fmt::format("\"{}\" is no role; choose input, compute or loss", name));
}

Precision precision_of(const JsonReader& field) {
  const std::string name = field.string();
  for (const std::string& known : precision_names())
    if (known == name) return parse_precision(name);
  field.fail(
      fmt::format("\"{}\" is no precision; choose one of {}", name, fmt::join(precision_names(), ", ")));
}

std::string listed(const std::vector<std::string>& names) {
  std::vector<std::string> texts;
  for (const std::string& name : names) texts.push_back(quoted(name));
  return fmt::format("[{}]", fmt::join(texts, ", "));
}

std::vector<std::string> names_in(const JsonReader& field) {
  std::vector<std::string> names;
  for (const JsonReader& name : field.elements()) names.push_back(name.string());
  return names;
}

std::string shared_in(const ProfileNode& node) {
  std::vector<std::string> uses;
  for (const SharedUse& use : node.shared)
    uses.push_back(fmt::format(R"({{"weight": {}, "param": {}, "bytes": {}, "slot_bytes": {}}})",
                               quoted(use.weight), use.param, use.bytes, use.slot_bytes));
  return uses.empty() ? "" : fmt::format(R"("shared": [{}], )", fmt::join(uses, ", "));
}

std::string line(int id, const ProfileNode& node) {
  const NodeCost& cost = node.cost;
  return fmt::format(
      R"({{"id": {}, "name": {}, {}{}"op": {}, "role": "{}", "inputs": [{}], {}{}"needs_gradient": {}, )"
      R"("forward_us": {}, "backward_input_us": {}, "backward_weight_us": {}, {}"update_us": {}, )"
      R"("output_bytes": {}, "param_bytes": {}, {}{}{}{}"stash_bytes": {}, {}"keeps_output": {}, )"
      R"("flops": {}}})",
      id, quoted(node.name),
      node.absorbed.empty() ? "" : fmt::format(R"("absorbed": {}, )", listed(node.absorbed)),
      node.module.empty() ? "" : fmt::format(R"("module": {}, )", quoted(node.module)), quoted(node.op),
      role_name(node.role), fmt::join(node.inputs, ", "), node.in_place ? R"("in_place": true, )" : "",
      node.barred ? R"("barred": true, )" : "", node.needs_gradient, json_microseconds(cost.forward_s),
      json_microseconds(cost.backward_input_s), json_microseconds(cost.backward_weight_s),
      cost.backward_parted_s > 0
          ? fmt::format(R"("backward_parted_us": {}, )", json_microseconds(cost.backward_parted_s))
          : "",
      json_microseconds(cost.update_s), cost.output_bytes, cost.param_bytes,
      cost.slot_bytes() == cost.param_bytes ? ""
                                            : fmt::format(R"("optimiser_bytes": {}, )", cost.slot_bytes()),
      cost.frozen_bytes > 0 ? fmt::format(R"("frozen_bytes": {}, )", cost.frozen_bytes) : "",
      cost.prepared_bytes > 0 ? fmt::format(R"("prepared_bytes": {}, )", cost.prepared_bytes) : "",
      shared_in(node), cost.stash_bytes,
      cost.scratch_bytes > 0 ? fmt::format(R"("scratch_bytes": {}, )", cost.scratch_bytes) : "",
      cost.keeps_output, cost.flops);
}

NodeCost cost_of(JsonReader& field) {
  NodeCost cost;
  cost.forward_s = seconds_from_us(field.at("forward_us"));
  cost.backward_input_s = seconds_from_us(field.at("backward_input_us"));
  cost.backward_weight_s = seconds_from_us(field.at("backward_weight_us"));
  if (field.has("backward_parted_us"))
    cost.backward_parted_s = seconds_from_us(field.at("backward_parted_us"));
  cost.update_s = seconds_from_us(field.at("update_us"));
  cost.output_bytes = field.at("output_bytes").integer(0, most_of_all);
  cost.param_bytes = field.at("param_bytes").integer(0, most_of_all);
  if (field.has("optimiser_bytes"))
    cost.optimiser_bytes = field.at("optimiser_bytes").integer(0, most_of_all);
  if (field.has("frozen_bytes")) cost.frozen_bytes = field.at("frozen_bytes").integer(0, most_of_all);
  if (field.has("prepared_bytes")) cost.prepared_bytes = field.at("prepared_bytes").integer(0, most_of_all);
  cost.stash_bytes = field.at("stash_bytes").integer(0, most_of_all);
  if (field.has("scratch_bytes")) cost.scratch_bytes = field.at("scratch_bytes").integer(0, most_of_all);
  cost.keeps_output = field.at("keeps_output").boolean();
  cost.flops = field.at("flops").number();
  return cost;
}

std::vector<int> inputs_of(const JsonReader& field, int id) {
  std::vector<int> inputs;
  for (const JsonReader& element : field.elements()) {
    int64_t input = element.integer(0, std::numeric_limits<int>::max());
    if (input >= id) element.fail(fmt::format("node {} can only use earlier nodes, not {}", id, input));
    inputs.push_back(int(input));
  }
  return inputs;
}

SharedUse shared_use_of(JsonReader field, const NodeCost& cost) {
  SharedUse use{.weight = field.at("weight").string()};
  use.param = int(field.at("param").integer(0, std::numeric_limits<int>::max()));
  use.bytes = field.at("bytes").integer(0, cost.param_bytes);
  use.slot_bytes = field.at("slot_bytes").integer(0, cost.slot_bytes());
  field.done();
  return use;
}

ProfileNode node_of(JsonReader field, int id) {
  ProfileNode node;
  int64_t written = field.at("id").integer();
  if (written != id) field.fail(fmt::format("id {} stands where node {} is expected", written, id));
  node.name = field.at("name").string();
  if (field.has("absorbed")) node.absorbed = names_in(field.at("absorbed"));
  if (field.has("module")) node.module = field.at("module").string();
  node.op = field.at("op").string();
  node.role = role_of(field.at("role"));
  node.inputs = inputs_of(field.at("inputs"), id);
  if (field.has("in_place")) node.in_place = field.at("in_place").boolean();
  if (field.has("barred")) node.barred = field.at("barred").boolean();
  if (node.name.empty()) field.fail("the name is empty");
  if (node.role == Role::input && !node.inputs.empty()) field.fail("a node of role input has no inputs");
  node.needs_gradient = field.at("needs_gradient").boolean();
  node.cost = cost_of(field);
  if (field.has("shared"))
    for (const JsonReader& use : field.at("shared").elements())
      node.shared.push_back(shared_use_of(use, node.cost));
  field.done();
  return node;
}

std::string sets_in(const std::vector<std::vector<int>>& sets) {
  std::vector<std::string> lists;
  for (const std::vector<int>& set : sets) lists.push_back(fmt::format("[{}]", fmt::join(set, ", ")));
  return fmt::format("\n  \"together\": [{}],", fmt::join(lists, ", "));
}

std::string sent_in(const std::vector<SentTensor>& sent) {
  std::vector<std::string> lines;
  for (const SentTensor& tensor : sent)
    lines.push_back(
        fmt::format(R"(    {{"nodes": [{}], "bytes": {}}})", fmt::join(tensor.nodes, ", "), tensor.bytes));
  return fmt::format("\n  \"sent\": [\n{}\n  ],", fmt::join(lines, ",\n"));
}

// Returns nodes that are computed, ascending. There are at least two.
std::vector<int> set_of(const JsonReader& field, const std::vector<ProfileNode>& nodes) {
  std::vector<int> set;
  for (const JsonReader& element : field.elements()) {
    set.push_back(int(element.integer(0, int64_t(nodes.size()) - 1)));
    if (nodes[size_t(set.back())].role == Role::input)
      element.fail(fmt::format("node {} is an input, which belongs to no stage", set.back()));
    if (set.size() > 1 && set.back() <= set[set.size() - 2]) element.fail("the nodes do not ascend");
  }
  if (set.size() < 2) field.fail("it takes two nodes at least");
  return set;
}

std::vector<SentTensor> sent_of(const JsonReader& field, const std::vector<ProfileNode>& nodes) {
  std::vector<SentTensor> sent;
  Sum bytes;
  for (JsonReader element : field.elements()) {
    sent.push_back({set_of(element.at("nodes"), nodes), element.at("bytes").integer(0, most_of_all)});
    if (!bytes.add(sent.back().bytes))
      element.fail(fmt::format("with this tensor, sizes add up to more than {} bytes", most_of_all));
    element.done();
  }
  return sent;
}

// Totals checks that sums over all nodes stay within what planners can add up.
class Totals {
 public:
  void add(const NodeCost& cost, const JsonReader& field) {
    if (!bytes_.add(cost.output_bytes) || !bytes_.add(cost.stash_bytes) || !params_.add(cost.param_bytes) ||
        !slots_.add(cost.slot_bytes()) || !frozen_.add(cost.frozen_bytes) ||
        !prepared_.add(cost.prepared_bytes))
      field.fail(fmt::format("with this node, sizes add up to more than {} bytes", most_of_all));
  }

 private:
  Sum bytes_, params_, slots_, frozen_, prepared_;
};

}  // namespace

std::string to_json(const Profile& profile) {
  std::vector<std::string> lines;
  for (size_t n = 0; n < profile.nodes.size(); ++n) lines.push_back("    " + line(int(n), profile.nodes[n]));
  return fmt::format(
      R"({{
  "format": "{}",
  "model": {},
  "graph_hash": {},
  "device": {},{}
  "microbatch": {},
  "threads": {},
  "ranks_at_once": {},
  "link": {},{}
  "overhead_us": {},{}{}{}{}
  "nodes": [
{}
  ]
}}
)",
      profile_format, quoted(profile.model), quoted(profile.graph_hash), quoted(profile.device),
      profile.precision == Precision::float32
          ? ""
          : fmt::format("\n  \"precision\": \"{}\",", name_of(profile.precision)),
      profile.microbatch, profile.threads, profile.ranks_at_once, to_json(profile.link),
      profile.link_way.empty() ? "" : fmt::format("\n  \"link_way\": {},", quoted(profile.link_way)),
      json_microseconds(profile.overhead_s),
      profile.called_once ? fmt::format("\n  \"called_once\": {},", listed(*profile.called_once)) : "",
      profile.together.empty() ? "" : sets_in(profile.together), profile.sent ? sent_in(*profile.sent) : "",
      profile.ids_are_names ? "\n  \"ids_are_names\": true," : "", fmt::join(lines, ",\n"));
}

Profile profile_from_json(const std::string& text, const std::string& origin) {
  const nlohmann::json json = parse_json(text, origin);
  JsonReader file(json, origin);
  if (std::string format = file.at("format").string(); format != profile_format)
    file.fail(fmt::format("the format is \"{}\", but \"{}\" is expected", format, profile_format));
  constexpr int many = std::numeric_limits<int>::max();
  Profile profile;
  profile.model = file.at("model").string();
  profile.graph_hash = file.at("graph_hash").string();
  profile.device = file.at("device").string();
  if (file.has("precision")) profile.precision = precision_of(file.at("precision"));
  profile.microbatch = int(file.at("microbatch").integer(0, many));
  profile.threads = int(file.at("threads").integer(1, many));
  profile.ranks_at_once = int(file.at("ranks_at_once").integer(1, many));
  profile.link = link_from_json(file.at("link"));
  if (file.has("link_way")) profile.link_way = file.at("link_way").string();
  profile.overhead_s = seconds_from_us(file.at("overhead_us"));
  profile.ids_are_names = file.has("ids_are_names") && file.at("ids_are_names").boolean();
  if (file.has("called_once")) profile.called_once = names_in(file.at("called_once"));
  std::set<std::string> names;
  std::map<std::string, SharedUse> shared;  // the first use of each weight
  Totals totals;
  for (const JsonReader& element : file.at("nodes").elements()) {
    profile.nodes.push_back(node_of(element, int(profile.nodes.size())));
    totals.add(profile.nodes.back().cost, element);
    const ProfileNode& node = profile.nodes.back();
    if (!names.insert(node.name).second)
      element.fail(fmt::format("a second node is named \"{}\"", node.name));
    for (const std::string& name : node.absorbed)
      if (!names.insert(name).second) element.fail(fmt::format("a second node is named \"{}\"", name));
    for (SharedUse& use : profile.nodes.back().shared) {
      use.first = int(profile.nodes.size()) - 1;
      const SharedUse& first = shared.try_emplace(use.weight, use).first->second;
      use.first = first.first;
      if (use.bytes != first.bytes)
        element.fail(
            fmt::format("\"{}\" has {} bytes, but {} at its first use", use.weight, use.bytes, first.bytes));
    }
  }
  if (file.has("together"))
    for (const JsonReader& set : file.at("together").elements())
      profile.together.push_back(set_of(set, profile.nodes));
  if (file.has("sent")) profile.sent = sent_of(file.at("sent"), profile.nodes);
  file.done();
  return profile;
}

}  // namespace antichain
