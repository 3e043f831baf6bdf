import { covers, type Role } from "./roles";

export interface User {
  id: string;
  role?: Role;
}

export interface Session {
  userId: string;
  role: Role | undefined;
  startedAt: Date;
}

/**
 * Start a session for a user. The role is copied from the user record as it is:
 * since rule R-12, version 2, there is no default role.
 */
export function createSession(user: User, now: Date): Session {
  return { userId: user.id, role: user.role, startedAt: now };
}

/** Throw unless the session's role covers the one a page needs. */
export function requireRole(session: Session, needed: Role): void {
  if (!covers(session.role, needed)) {
    throw new Error(`role ${needed} required`);
  }
}
