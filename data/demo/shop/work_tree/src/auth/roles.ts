export type Role = "admin" | "staff" | "customer";

export const ROLES: readonly Role[] = ["admin", "staff", "customer"];

/** True if `role` may do what `needed` may do. */
export function covers(role: Role | undefined, needed: Role): boolean {
  if (role === undefined) {
    return false;
  }
  return ROLES.indexOf(role) <= ROLES.indexOf(needed);
}

/** Parse a role from a token; an unknown word is an error, never a default. */
export function parseRole(word: string): Role {
  const found = ROLES.find((role) => role === word);
  if (found === undefined) {
    throw new Error(`unknown role: ${word}`);
  }
  return found;
}
