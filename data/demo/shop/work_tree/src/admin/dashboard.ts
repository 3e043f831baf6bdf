import { requireRole, type Session } from "../auth/session";

export interface Widget {
  title: string;
  render(): string;
}

/** The admin dashboard: every widget, one below the other, for administrators only. */
export function renderDashboard(session: Session, widgets: Widget[]): string {
  requireRole(session, "admin");
  return widgets.map((widget) => `<section><h2>${widget.title}</h2>${widget.render()}</section>`).join("\n");
}
