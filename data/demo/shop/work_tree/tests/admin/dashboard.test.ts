import { describe, expect, it } from "vitest";
import { renderDashboard } from "../../src/admin/dashboard";

describe("renderDashboard", () => {
  it("draws one section per widget for an admin", () => {
    const session = { userId: "user-9", role: "admin" as const, startedAt: new Date(0) };
    const html = renderDashboard(session, [{ title: "Orders", render: () => "<p>3</p>" }]);
    expect(html).toContain("<h2>Orders</h2>");
  });
});
