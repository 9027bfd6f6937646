// The MPI transport keeps what every transport promises. So do the transports over it for the tensors of a
// device, which is a stand-in. The argument chooses one: "staged", "peers" for copies into other ranks'
// memory, or "mixed" for both, by pairs. mpirun starts this program. A broken promise ends the job with its
// sentence, a deadlock with the watchdog's.
#include <cstdio>
#include <exception>
#include <memory>
#include <string>
#include <utility>

#include "pipeline/transport/mpi_transport.h"
#include "pipeline/transport/peer_transport.h"
#include "pipeline/transport/staged_transport.h"
#include "tests/pipeline/fakes/fake_device.h"
#include "tests/pipeline/transport/transport_checks.h"

namespace {

using namespace antichain;
using test::FakeCopies, test::FakePeers;

std::unique_ptr<Transport> over(JobTransport& job, const std::string& way) {
  if (way == "staged") return make_staged_transport(job, std::make_unique<FakeCopies>());
  auto peers = std::make_unique<FakePeers>();
  if (way == "mixed")
    peers->refuses = [me = job.rank()](int peer) { return (me + peer) % 2 > 0 && me + peer < 4; };
  const PeerPairs pairs = find_pairs(job, *peers);
  if (job.rank() == 0 && !pairs.exception().empty()) std::printf("%s\n", pairs.exception().c_str());
  return make_peer_transport(job, std::move(peers), std::make_unique<FakeCopies>(), pairs);
}

}  // namespace

int main(int argc, char** argv) {
  MpiSession session(30);
  std::unique_ptr<Transport> own;
  if (argc > 1) own = over(session.transport(), argv[1]);
  Transport& transport = own ? *own : session.transport();
  for (const test::TransportCheck& check : test::transport_checks()) try {
      transport.job().activity().doing(check.name);
      check.run(transport);
      transport.flush();
      transport.job().barrier();
      if (transport.rank() == 0) std::printf("%s on %d ranks: passed\n", check.name, transport.size());
    } catch (const std::exception& error) {
      session.end_job(std::string(check.name) + ": " + error.what(), 1);
    }
  return 0;
}
