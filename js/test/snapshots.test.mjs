/** Snapshots in Node and in Chromium, and from one to the other. */

import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import * as moonbox from "../dist/index.js";
import { ISOLATED, missing, openPage } from "./chromium.mjs";
import { CHECKS, lookAt, richSnapshot, SEEN } from "./snapshots.mjs";

describe("in Node", () => {
  for (const [name, check] of Object.entries(CHECKS)) test(name, () => check(moonbox));
});

describe("in Chromium", { skip: missing }, () => {
  let opened;
  before(async () => {
    opened = await openPage("/test/driver.html", { headers: ISOLATED, find: (path) => `js${path}` });
  });
  after(() => opened.close());

  for (const name of Object.keys(CHECKS)) {
    test(name, () =>
      opened.page.evaluate(async (wanted) => {
        const { CHECKS } = await import("/test/snapshots.mjs");
        await CHECKS[wanted](await import("/dist/browser.js"));
      }, name));
  }

  test("a snapshot made in Node goes on in the browser, and one of the browser in Node", async () => {
    const values = await opened.page.evaluate(async (bytes) => {
      const { lookAt } = await import("/test/snapshots.mjs");
      return lookAt(await import("/dist/browser.js"), new Uint8Array(bytes));
    }, [...(await richSnapshot(moonbox))]);
    assert.deepEqual(values, SEEN);
    const bytes = await opened.page.evaluate(async () => {
      const { richSnapshot } = await import("/test/snapshots.mjs");
      return [...(await richSnapshot(await import("/dist/browser.js")))];
    });
    assert.deepEqual(await lookAt(moonbox, new Uint8Array(bytes)), SEEN);
  });
});
