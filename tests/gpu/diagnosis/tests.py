"""Runs the tests that logs name as failed, each in a process of its own, because an error that breaks the
device fails all tests behind it."""
import glob, os, re

from diagnosis.runs import last_line, row
from diagnosis.variants import AS_IT_IS, Variant


def failed_tests(folder):
    """Test: log, of those that failed or did not end. What failed first in each log tells most, so these come
    first."""
    queues = []
    for log in sorted(glob.glob(os.path.join(folder, "*.log"))):
        failed, running = [], None
        with open(log, errors="replace") as lines:
            for line in lines:
                if match := re.match(r"\[( RUN      |       OK |  FAILED  |  SKIPPED )\] (\w\S*\.[^\s,]+)", line):
                    what, test = match.groups()
                    running = test if "RUN" in what else None
                    if "FAILED" in what and test not in failed:
                        failed.append(test)
        failed += [running] if running and running not in failed else []
        queues.append([(test, os.path.basename(log)) for test in failed])
    found = {}
    for place in range(max(map(len, queues), default=0)):
        for queue in queues:
            if place < len(queue):
                found.setdefault(*queue[place])
    return found


def tests_alone(args, runs):
    said = []
    found = failed_tests(args.logs) if args.logs else {}
    if not found:
        return said
    print(f"\n{len(found)} failed tests in the logs; the first {min(len(found), 8)}, each alone (an error that breaks the device fails all behind it)")
    row("test", "variant", "result", "", "", "")
    variants = [AS_IT_IS, Variant("without graphs", {"ANTICHAIN_CUDA_GRAPHS": "0"}), Variant("own loops", {"ANTICHAIN_CUDA_LOOPS": "all"}),
                Variant("one kernel at a time", {"CUDA_LAUNCH_BLOCKING": "1", "ANTICHAIN_CUDA_GRAPHS": "0"})]
    for test, log in list(found.items())[:8]:
        results = {}
        for v in variants:
            program = args.tests[1] if re.match("Gpu", test) and len(args.tests) > 1 else args.tests[0]
            code, text = runs.run([program, "--gtest_brief=1", f"--gtest_filter={test}"], v.environment)
            results[v.name] = code
            failure = re.search(r"Failure\n(.*)", text)
            row("", v.name, "not run" if code is None else "right" if code == 0 else f"code {code}", "", "",
                test if code == 0 else (failure.group(1).strip()[:120] if failure else last_line(text)))
            if code == 0 and v is AS_IT_IS:
                break
        if results.get("as it is") == 0:
            said.append(f"{test}: right alone, so what ran before it in {log} is at fault")
        else:
            said += [f"{test}: right with {name}" for name, code in results.items() if code == 0]
    return said
