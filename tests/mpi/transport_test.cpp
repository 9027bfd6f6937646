// mpirun starts this program on several ranks. It tests that the MPI transport keeps what every transport
// promises, or with an argument the transport over it that carries the tensors of a device (a stand-in here).
// A broken promise ends the job with a sentence that names it, and a deadlock ends it with the watchdog's.
#include <cstdio>
#include <exception>
#include <memory>
#include <string>

#include "pipeline/transport/mpi_transport.h"
#include "pipeline/transport/staged_transport.h"
#include "tests/pipeline/fakes/fake_device.h"
#include "tests/pipeline/transport/transport_checks.h"

using namespace antichain;

int main(int argc, char**) {
  MpiSession session(30);
  std::unique_ptr<Transport> own;
  if (argc > 1) own = make_staged_transport(session.transport(), std::make_unique<test::FakeCopies>());
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
