#include "pipeline/train/exchange_norm.h"

#include <fmt/format.h>

#include <cstdlib>
#include <sstream>

namespace antichain {
namespace {

// Writes a line for each parameter: its sum in hexadecimal, which is exact, and its name.
std::string to_text(const SquaresByName& squares) {
  std::string text;
  for (const auto& [name, sum] : squares) text += fmt::format("{:a} {}\n", sum, name);
  return text;
}

void add_from_text(const std::string& text, SquaresByName& squares) {
  std::istringstream in(text);
  for (std::string line; std::getline(in, line);) {
    char* end = nullptr;
    const double sum = std::strtod(line.c_str(), &end);
    squares.try_emplace(end + 1, sum);
  }
}

}  // namespace

float agree_on_clip_factor(const SquaresByName& mine, double most, Job& job) {
  job.activity().doing("agreeing with the other ranks on the norm of the gradients");
  SquaresByName all;
  for (const std::string& text : job.gather(to_text(mine))) add_from_text(text, all);
  const std::string factor = job.broadcast(fmt::format("{:a}", clip_factor(all, most)));
  return float(std::strtod(factor.c_str(), nullptr));
}

}  // namespace antichain
