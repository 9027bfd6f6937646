#include "partition/profile/pipedream_flops.h"

#include <array>
#include <charconv>
#include <optional>
#include <utility>

namespace antichain {
namespace {

constexpr int largest = 10'000'000;  // larger numbers are not believed, so that products stay finite

std::optional<int> number(std::string_view text) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool read = error == std::errc() && end != text.data() && value >= 1 && value <= largest;
  return read ? std::optional(value) : std::nullopt;
}

// Returns what follows "key=" in the description, or an empty view when the key is missing.
std::string_view after(std::string_view description, std::string_view key) {
  for (size_t at = 0; (at = description.find(key, at)) != std::string_view::npos; at += key.size()) {
    const std::string_view rest = description.substr(at + key.size());
    const bool whole_word = at > 0 && (description[at - 1] == ' ' || description[at - 1] == '(');
    if (whole_word && !rest.empty() && rest[0] == '=') return rest.substr(1);
  }
  return {};
}

// Reads "kernel_size=3" as 3 x 3 and "kernel_size=(1, 7)" as 1 x 7.
std::optional<double> kernel_area(std::string_view description) {
  std::string_view kernel = after(description, "kernel_size");
  if (kernel.empty() || kernel[0] != '(') {
    const std::optional<int> side = number(kernel);
    return side ? std::optional(double(*side) * *side) : std::nullopt;
  }
  kernel.remove_prefix(1);
  const std::optional<int> height = number(kernel);
  const size_t comma = kernel.find(", ");
  if (!height || comma == std::string_view::npos) return {};
  const std::optional<int> width = number(kernel.substr(comma + 2));
  return width ? std::optional(double(*height) * *width) : std::nullopt;
}

bool has_bias(std::string_view description) { return !after(description, "bias").starts_with("False"); }

// Counts per output element two FLOPs for each weight that it sums over and one for the bias.
std::optional<double> conv2d(std::string_view description) {
  const std::optional<int> in = number(description.substr(description.find('(') + 1));
  const std::optional<double> area = kernel_area(description);
  if (!in || !area) return {};
  const int groups = number(after(description, "groups")).value_or(1);
  return 2 * double(*in) / groups * *area + (has_bias(description) ? 1 : 0);
}

std::optional<double> linear(std::string_view description) {
  const std::optional<int> in = number(after(description, "in_features"));
  return in ? std::optional(2.0 * *in + (has_bias(description) ? 1 : 0)) : std::nullopt;
}

std::optional<double> batch_norm(std::string_view) { return 8; }
std::optional<double> nothing(std::string_view) { return 0; }  // moves or names data

constexpr std::array<std::pair<std::string_view, std::optional<double> (*)(std::string_view)>, 10>
    flops_per_output = {{
        {"AvgPool2d", kernel_area},
        {"BatchNorm2d", batch_norm},
        {"Concat", nothing},
        {"Conv2d", conv2d},
        {"Embedding", nothing},
        {"Linear", linear},
        {"MaxPool2d", kernel_area},
        {"Size", nothing},
        {"View", nothing},
        {"__getitem__", nothing},
    }};

}  // namespace

double pipedream_flops(std::string_view description, int64_t output_elements) {
  const std::string_view op = description.substr(0, description.find('('));
  for (const auto& [name, flops] : flops_per_output)
    if (name == op) return flops(description).value_or(1) * double(output_elements);
  return double(output_elements);
}

}  // namespace antichain
