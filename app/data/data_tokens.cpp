// antichain data tokens writes text as one HDF5 file of tokens, which are its bytes. Other vocabularies are
// those of `python3 -m antichain.tokens`, which writes the same form.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "app/cli/checks.h"
#include "app/cli/number_text.h"
#include "app/cli/option_row.h"
#include "app/cli/overwriting.h"
#include "app/cli/progress_bar.h"
#include "app/data/data_commands.h"
#include "data/pack_text.h"
#include "pipeline/host/launch.h"
#include "pipeline/host/stop_signals.h"

namespace antichain {
namespace {

constexpr int most_files = 1'000'000;

struct TokensOptions {
  std::vector<std::string> files;
  std::string separator, out_file;
  double validation = 0.1;
};

// A shell passes "\n" as two characters.
std::string unescaped(const std::string& text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const char next = text[i] == '\\' && i + 1 < text.size() ? text[i + 1] : '\0';
    const char stands_for = next == 'n' ? '\n' : next == 't' ? '\t' : next == '\\' ? '\\' : '\0';
    plain += stands_for ? stands_for : text[i];
    i += stands_for ? 1 : 0;
  }
  return plain;
}

void run(const TokensOptions& o) {
  check_writable({o.out_file});
  check_no_output_is("a text", o.files);
  if (rank_hint() > 0) return;  // under mpirun rank 0 writes
  const StopRequests stop;      // so that no partial file remains
  StopRequests::work_begins();
  ProgressBar bar(stdout);
  const PackedText text = pack_text(o.files, o.out_file,
                                    {.validation = o.validation,
                                     .separator = unescaped(o.separator),
                                     .progress = [&](int64_t done, int64_t total) {
                                       StopRequests::end_if_heard();
                                       bar.show(done, total, "bytes");
                                     }});
  bar.say(fmt::format("{}: {} for training and {} for tests, {}, vocabulary of 256 (bytes)", o.out_file,
                      counted(text.train_tokens, "token"), grouped(text.test_tokens),
                      counted(text.documents, "document")));
}

}  // namespace

void add_data_tokens(CLI::App& data) {
  auto options = std::make_shared<TokensOptions>();
  TokensOptions& o = *options;
  CLI::App& command = add_command(
      data, "tokens", "write text as one HDF5 file of tokens, its bytes, for train --dataset hdf5:FILE",
      "antichain data tokens --text book.txt --out book.h5");
  const OptionGroup add(command, "Text");
  add("--text FILE", o.files, {}, "files of text; each is a document")->required()->expected(1, most_files);
  add("--document-separator TEXT", o.separator, {},
      "a text that ends a document, such as '\\n\\n', and stays its end [a file's end alone]");
  add("--validation X", o.validation, number_between(1e-6, 0.9),
      "share of the tokens, the last ones, that evaluations are over");
  add_option(command, "Output", "--out FILE", o.out_file, {}, "the file to write")->required();
  command.callback([options] { run(*options); });
}

}  // namespace antichain
