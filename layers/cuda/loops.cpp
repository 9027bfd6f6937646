#include "layers/cuda/loops.h"

#include <cstdlib>
#include <string_view>

#include "framework/error.h"

namespace antichain::cuda {
namespace {

std::string_view said() {
  const char* variable = std::getenv("ANTICHAIN_CUDA_LOOPS");
  const std::string_view word = variable ? variable : "";
  if (word == "" || word == "convolutions" || word == "products" || word == "all") return word;
  throw Error(
      "ANTICHAIN_CUDA_LOOPS is '" + std::string(word) + "', which names nothing that our own loops could do",
      "set it to convolutions, products or all, or unset it", ExitCode::usage);
}

}  // namespace

bool by_loops(Library library) {
  const std::string_view word = said();
  return word == "all" || word == (library == Library::cudnn ? "convolutions" : "products");
}

std::string loops_in_words() {
  const std::string_view word = said();
  if (word.empty()) return "";
  return ", " + std::string(word == "all" ? "convolutions and products" : word) + " by our own loops";
}

}  // namespace antichain::cuda
