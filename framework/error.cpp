#include "framework/error.h"

#include "framework/printable.h"

namespace antichain {

Error::Error(std::string sentence, std::string hint, ExitCode code)
    : std::runtime_error(hint.empty() ? printable_lines(sentence)
                                      : printable_lines(sentence) + ": " + printable_lines(hint)),
      code_(code) {}

void check_failed(const char* expression, const std::string& why, std::source_location where) {
  throw Error(why + " (" + expression + ", " + where.file_name() + ":" + std::to_string(where.line()) + ")",
              "", ExitCode::failure);
}

}  // namespace antichain
