import type { User } from "../../src/auth/session";

/** A user for tests. Callers override what the test is about. */
export function createUserMock(overrides: Partial<User> = {}): User {
  return { id: "user-1", ...overrides };
}
