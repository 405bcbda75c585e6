import assert from "node:assert/strict";
import { test } from "node:test";

import { isForWheelchairs } from "./wheelchair.ts";

test("a category is for wheelchairs if its name says so", () => {
  for (const name of ["Wheelchair places with a companion seat", "轮椅席", "无障碍座位", "Rollstuhlplätze", "Fauteuils roulants"]) assert.ok(isForWheelchairs(name), name);
  for (const name of ["Stalls, front", "Armchairs", "Wheel of Fortune", "站票"]) assert.ok(!isForWheelchairs(name), name);
});
