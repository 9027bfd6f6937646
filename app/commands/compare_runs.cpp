// antichain compare sets two runs, two profiles or two plans side by side. Its exit code says whether the
// numbers are the same.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <memory>

#include "app/cli/checks.h"
#include "app/cli/commands.h"
#include "app/cli/option_row.h"
#include "app/cli/output_file.h"
#include "app/options/options.h"
#include "app/report/file_comparison.h"
#include "app/report/run_comparison.h"
#include "framework/error.h"
#include "framework/paths.h"
#include "pipeline/host/launch.h"

namespace antichain {
namespace {

constexpr ExitCode they_differ = ExitCode(7);  // this command's own exit code

struct CompareOptions {
  std::string a, b, json_file;
};

struct CompareResult {
  bool equal = false;
  std::string text, verdict, json;
};

CompareResult compare_results(const CompareOptions& options) {
  const bool folders = is_folder(options.a);
  if (folders != is_folder(options.b))
    throw Error(fmt::format("{} and {} are not of one kind: one is a folder", options.a, options.b),
                "give two folders of train --results, two profiles, or two plans", ExitCode::usage);
  if (folders) {
    const RunComparison runs(read_run(options.a), read_run(options.b));
    return {runs.equal(), runs.str(), runs.verdict(), runs.json()};
  }
  const FileComparison files = compare_files(options.a, options.b);
  return {files.equal, files.text, files.verdict, files.json};
}

void run(const CompareOptions& options) {
  check_writable({options.json_file});
  if (rank_hint() > 0) return;  // under mpirun rank 0 compares
  const CompareResult result = compare_results(options);
  write_output(options.json_file, result.json);
  begin_answer();
  fmt::print("{}\n", result.text);
  if (!result.equal)
    throw Error(fmt::format("{} and {} differ: {}", options.a, options.b, result.verdict), "", they_differ);
  fmt::print("Equal: {}\n", result.verdict);
}

}  // namespace

void add_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  CLI::App& command = add_command(app, "compare", "set two runs side by side, or two profiles or plans",
                                  "antichain compare first second");
  const OptionGroup add(command, "Compared");
  add("A PATH", options->a, {}, "a folder of train --results, a profile, or a plan")->required();
  add("B PATH", options->b, {}, "another of the same kind")->required();
  add_output_option(command, "--json", options->json_file, "write the comparison");
  command.callback([options] { run(*options); });
}

}  // namespace antichain
