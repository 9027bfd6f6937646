// antichain data prepares and shows what training reads.
#include "app/cli/commands.h"

#include <CLI/CLI.hpp>

#include "app/data/data_commands.h"

namespace antichain {

void add_data(CLI::App& app) {
  CLI::App& data = *app.add_subcommand("data", "pack, show and export what training is fed with");
  data.footer(
      "Example\n  antichain data pack --images photos --size 64 --out photos.h5\n  antichain data show "
      "photos.h5");
  data.require_subcommand(1);
  add_data_pack(data);
  add_data_tokens(data);
  add_data_show(data);
  add_data_batches(data);
}

}  // namespace antichain
