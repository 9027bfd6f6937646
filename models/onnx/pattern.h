// A Pattern is a tree of operators, written as "Mul(x, Sigmoid(x))". A small letter stands for any tensor, a
// capital one for a constant, and a number for a constant of that value; a letter means the same wherever it
// stands. "d=Sub(x, y)" gives a name to what matches. Factors and terms may stand in any order, and
// Mul(a, b, c) is any product of the three.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "models/onnx/constants.h"

namespace antichain::onnx {

struct Pattern {
  std::string op;  // "" for a letter or a number
  char letter = 0;
  std::optional<double> number;
  std::vector<Pattern> inputs;
};

// Reads a pattern of ours; the text has to be right.
Pattern pattern_of(std::string_view text);

// A Match says what the letters stand for, and which nodes matched.
struct Match {
  std::map<char, std::string> letters;
  std::vector<const Node*> nodes;

  const Node& node(std::string_view op) const;  // the first of that operator, which must be there
  std::vector<const Node*> all(std::string_view op) const;
};

class Matcher {
 public:
  // `makers` has the node that makes each tensor, and may grow. Both must outlive it.
  Matcher(const std::unordered_map<std::string, const Node*>& makers, Constants& constants)
      : makers_(makers), constants_(constants) {}

  // Say whether the tensor of that name, or the node, is what the pattern describes, and add to the match.
  bool matches(const Pattern&, const std::string& value, Match&) const;
  bool matches(const Pattern&, const Node&, Match&) const;

 private:
  bool in_any_order(const Pattern&, unsigned which, const Node&, Match&) const;
  bool matches_some(const Pattern&, unsigned which, const std::string& value, Match&) const;

  const std::unordered_map<std::string, const Node*>& makers_;
  Constants& constants_;
};

}  // namespace antichain::onnx
