/** Prints one line at the end, like the other test runners of this project. */

import type { Reporter, Suite, TestCase } from "@playwright/test/reporter";

export default class Summary implements Reporter {
  #suite: Suite | undefined;

  onBegin(_config: unknown, suite: Suite): void {
    this.#suite = suite;
  }

  onEnd(): void {
    const tests = this.#suite?.allTests() ?? [];
    const count = (outcome: ReturnType<TestCase["outcome"]>): number =>
      tests.filter((test) => test.outcome() === outcome).length;
    // A test without a result, such as after a crash of the runner, counts as failed.
    const unrun = tests.filter((test) => test.results.length === 0).length;
    const passed = count("expected") + count("flaky");
    console.log(
      `\n${passed} passed, ${count("unexpected") + unrun} failed, ${count("skipped") - unrun} skipped`,
    );
  }
}
