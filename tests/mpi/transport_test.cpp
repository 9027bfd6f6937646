// The MPI transport keeps what every transport promises, and so does the one over it that stages a device's tensors ("staged" as
// argument; the device is a stand-in). Started by mpirun; a broken promise ends the job with its sentence, a deadlock with the
// watchdog's.
#include <cstdio>
#include <exception>
#include <memory>

#include "pipeline/mpi_transport.h"
#include "pipeline/staged_transport.h"
#include "tests/pipeline/fake_device.h"
#include "tests/pipeline/transport_checks.h"

int main(int argc, char**) {
  using namespace antichain;
  MpiSession session(30);
  std::unique_ptr<Transport> staged;
  if (argc > 1) staged = make_staged_transport(session.transport(), std::make_unique<testing::FakeCopies>());
  Transport& transport = staged ? *staged : session.transport();
  for (const testing::TransportCheck& check : testing::transport_checks()) try {
      transport.activity().doing(check.name);
      check.run(transport);
      transport.flush();
      transport.barrier();
      if (transport.rank() == 0) std::printf("%s on %d ranks: passed\n", check.name, transport.size());
    } catch (const std::exception& error) {
      session.end_job(std::string(check.name) + ": " + error.what(), 1);
    }
  return 0;
}
