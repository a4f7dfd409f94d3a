// The four roles of people. An operator's role covers the installation, every other role one workspace.

/** The highest first. */
export const roles = ['operator', 'admin', 'member', 'viewer'] as const
export type Role = (typeof roles)[number]

export const workspaceRoles = ['admin', 'member', 'viewer'] as const
export type WorkspaceRole = (typeof workspaceRoles)[number]

/**
 * Whether a role includes everything another one may do. A member sees only their own requests and a viewer all of them, so
 * neither covers the other.
 */
export function coversRole(role: Role, other: Role): boolean {
  if (role === 'operator' || role === other) return true
  return role === 'admin' && other !== 'operator'
}
