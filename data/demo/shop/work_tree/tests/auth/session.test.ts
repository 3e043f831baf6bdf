import { describe, expect, it } from "vitest";
import { createSession, requireRole } from "../../src/auth/session";
import { createUserMock } from "./session.fixture";

const NOW = new Date("2026-05-20T08:00:00Z");

describe("createSession", () => {
  it("keeps the role of an admin", () => {
    const session = createSession(createUserMock(), NOW);
    expect(session.role).toBe("admin");
  });

  it("refuses a page that needs more than the role covers", () => {
    const session = createSession(createUserMock({ role: "customer" }), NOW);
    expect(() => requireRole(session, "admin")).toThrow("role admin required");
  });
});
