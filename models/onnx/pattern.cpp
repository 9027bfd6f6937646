#include "models/onnx/pattern.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <iterator>

namespace antichain::onnx {
namespace {

// Reads one pattern off the beginning of `left`.
Pattern take_pattern(std::string_view& left) {
  Pattern p;
  if (left.size() > 1 && left[1] == '=') p.letter = left[0], left.remove_prefix(2);
  const std::string word(left.substr(0, std::min(left.find_first_of("(),"), left.size())));
  left.remove_prefix(word.size());
  if (word.find_first_of("0123456789") == 0)
    p.number = std::stod(word);
  else if (word.size() == 1)
    p.letter = word[0];
  else
    p.op = word;
  if (left.starts_with('(')) {
    do {
      left.remove_prefix(1);
      while (left.starts_with(' ')) left.remove_prefix(1);
      p.inputs.push_back(take_pattern(left));
    } while (left.starts_with(','));
    left.remove_prefix(1);
  }
  return p;
}

}  // namespace

Pattern pattern_of(std::string_view text) { return take_pattern(text); }

const Node& Match::node(std::string_view op) const {
  return **std::ranges::find_if(nodes, [&](const Node* n) { return n->op == op; });
}

std::vector<const Node*> Match::all(std::string_view op) const {
  std::vector<const Node*> found;
  std::ranges::copy_if(nodes, std::back_inserter(found), [&](const Node* n) { return n->op == op; });
  return found;
}

bool Matcher::matches(const Pattern& p, const std::string& value, Match& match) const {
  if (p.number) {
    if (!constants_.has(value)) return false;
    const auto number = number_of(*constants_.find(value));
    // Constants that were rounded to float16 are read, too.
    return number && std::abs(*number - *p.number) <= 1e-3 * std::abs(*p.number);
  }
  if (p.op.empty()) {
    if ((p.letter >= 'A' && p.letter <= 'Z') != constants_.has(value)) return false;
    return match.letters.try_emplace(p.letter, value).first->second == value;
  }
  const auto maker = makers_.find(value);
  if (maker == makers_.end() || !matches(p, *maker->second, match)) return false;
  return p.letter == 0 || match.letters.try_emplace(p.letter, value).first->second == value;
}

bool Matcher::matches(const Pattern& p, const Node& node, Match& match) const {
  if (node.op != p.op || !node.domain.empty()) return false;
  match.nodes.push_back(&node);
  if ((p.op == "Add" || p.op == "Mul") && node.inputs.size() == 2)
    return in_any_order(p, (1u << p.inputs.size()) - 1, node, match);
  // The axes of a mean may be an input.
  if (p.inputs.size() != (p.op == "ReduceMean" ? 1 : node.inputs.size())) return false;
  for (size_t i = 0; i < p.inputs.size(); ++i)
    if (!matches(p.inputs[i], node.inputs[i], match)) return false;
  return true;
}

// Divides the pattern's inputs in all ways among the two of the node; `which` has a bit for each.
bool Matcher::in_any_order(const Pattern& p, unsigned which, const Node& node, Match& match) const {
  for (unsigned first = (which - 1) & which; first != 0; first = (first - 1) & which) {
    Match attempt = match;
    if (matches_some(p, first, node.inputs[0], attempt) &&
        matches_some(p, which & ~first, node.inputs[1], attempt)) {
      match = std::move(attempt);
      return true;
    }
  }
  return false;
}

bool Matcher::matches_some(const Pattern& p, unsigned which, const std::string& value, Match& match) const {
  if (std::popcount(which) == 1) return matches(p.inputs[size_t(std::countr_zero(which))], value, match);
  const auto maker = makers_.find(value);
  return maker != makers_.end() && maker->second->op == p.op && maker->second->inputs.size() == 2 &&
         in_any_order(p, which, *maker->second, match);
}

}  // namespace antichain::onnx
