// People: who calls, members of workspaces and their roles, invitations, and personal management tokens.

import { z } from 'zod'
import { alertKinds } from '../kernel/alert.ts'
import { roles, workspaceRoles } from '../kernel/roles.ts'
import { kindsExpected } from './alerts.ts'
import { idField, listSchema, must, nameField, pageFields, pageQuery, time } from './fields.ts'
import { type Definitions, emptyBody } from './operation.ts'

const roleField = z
  .enum(roles, must(`one of ${roles.join(', ')}`))
  .describe('operator: the installation. admin, member, viewer: one workspace.')

const workspaceOf = z.string().nullable().describe('null for operators.')

export const memberSchema = z.object({
  id: z.string(),
  person_id: z.string(),
  email: z.string(),
  name: z.string(),
  role: z.enum(roles),
  workspace_id: workspaceOf,
  source: z
    .enum(['invitation', 'sign-up', 'claim'])
    .describe('`claim`: set by the identity provider at every sign-in.'),
  created_at: time,
})

export const invitationSchema = z.object({
  id: z.string(),
  email: z.string(),
  role: z.enum(roles),
  workspace_id: workspaceOf,
  created_at: time,
  expires_at: time,
})

const isMailed = z
  .boolean()
  .describe('Whether the mail server accepted the link within 10 seconds; false also if no e-mail is configured.')
const linkField = z.string().describe('Send it to the person. It works once and is shown only once.')

export const managementTokenSchema = z.object({
  id: z.string(),
  name: z.string(),
  last4: z.string().describe('The last four characters; the rest is never shown.'),
  role: z.enum(roles),
  workspace_id: workspaceOf,
  created_at: time,
  expires_at: time,
})

export const sessionSchema = z.object({
  id: z.string(),
  client: z.string().describe('What the browser calls itself.'),
  opened_at: time.describe('The sign-in.'),
  used_at: time.describe('The last use, up to five minutes late.'),
  is_current: z.boolean().describe('Whether this request belongs to it.'),
})

const ofWorkspace = z.strictObject({
  ...pageFields,
  workspace_id: idField('workspace').optional().describe('Only those of this workspace.'),
})

const days = 'a whole number of days from 1 to 365'

export const peopleOperations = {
  getMe: {
    summary: 'Says who is calling: the installation, a person or a token, and their workspaces and roles.',
    answer: z.object({
      kind: z.enum(['installation', 'person', 'token']),
      person: z
        .object({
          id: z.string(),
          email: z.string(),
          name: z.string(),
          has_password: z.boolean(),
          alert_kinds: z
            .array(z.enum(alertKinds))
            .nullable()
            .describe('Alerts by e-mail; null = as the alert rules say.'),
        })
        .nullable()
        .describe('null for the installation.'),
      is_operator: z.boolean(),
      workspaces: z
        .array(z.object({ id: z.string(), name: z.string(), role: z.enum(workspaceRoles) }))
        .describe('Empty for operators, who may use all of them.'),
    }),
  },
  updateMe: {
    summary: 'Chooses the alerts that the caller gets by e-mail.',
    body: z.strictObject({
      alert_kinds: z
        .array(z.enum(alertKinds, kindsExpected), kindsExpected)
        .nullable()
        .describe('null = as the alert rules say.'),
    }),
    example: { alert_kinds: ['balance.low'] },
    answer: z.object({ alert_kinds: z.array(z.enum(alertKinds)).nullable() }),
  },
  changePassword: {
    summary: "Changes the caller's password, ends all of their sessions and signs them out on all devices.",
    body: z.strictObject({ current: z.string(must('the current password')), password: z.string(must('the new one')) }),
    example: { current: 'correct horse battery', password: 'staple correct horse' },
    status: 204,
  },
  endSessions: {
    summary: 'Ends all sessions of the caller, in every browser.',
    body: emptyBody,
    answer: z.object({ ended: z.number() }),
  },
  listSessions: {
    summary: "Lists the caller's sessions in the console, latest sign-in first.",
    answer: listSchema(sessionSchema),
  },
  endSession: {
    summary: 'Signs one browser out.',
    status: 204,
  },
  createSignInLink: {
    summary: 'Creates a link that signs one browser in to the console as the operator, once and within 15 minutes.',
    body: emptyBody,
    answer: z.object({
      path: z.string().describe('Below the address of the gateway.'),
      url: z.string().nullable().describe('The whole link; null without `server.public_url`.'),
    }),
    status: 201,
  },
  createToken: {
    summary: "Creates a personal management token. Its role is at most the caller's. The secret is shown only once.",
    body: z.strictObject({
      name: nameField,
      role: roleField,
      workspace_id: idField('workspace').nullish().describe('Required, except for the role operator.'),
      expires_in_days: z.int(must(days)).min(1, must(days)).max(365, must(days)).default(90).describe('Default 90.'),
    }),
    example: { name: 'deploy script', role: 'viewer', workspace_id: 'ws_01KA8M0Q2V7TSCXZ9Y5D3E1F4G' },
    answer: managementTokenSchema.extend({
      secret: z.string().describe('`tg-mt-…`, a Bearer token. Shown only once.'),
    }),
    status: 201,
  },
  listTokens: {
    summary: "Lists the caller's personal management tokens.",
    query: pageQuery,
    answer: listSchema(managementTokenSchema),
  },
  revokeToken: {
    summary: 'Revokes a token of the caller, immediately on every replica.',
    status: 204,
  },
  listMembers: {
    summary: 'Lists people with their roles: of a workspace, or all with the operators.',
    query: ofWorkspace,
    answer: listSchema(memberSchema),
  },
  updateMember: {
    summary: 'Changes the role of a member, from their next request on.',
    body: z.strictObject({ role: roleField }),
    example: { role: 'viewer' },
    answer: memberSchema,
  },
  removeMember: {
    summary: 'Removes a member. Their sessions, tokens and own keys end within a second on every replica.',
    status: 204,
  },
  createResetLink: {
    summary: 'Creates a link with which a member sets a new password, within a day.',
    body: emptyBody,
    answer: z.object({ url: linkField, is_mailed: isMailed, expires_at: time }),
    status: 201,
  },
  createInvitation: {
    summary: 'Invites an address. The link works once, for 7 days, and replaces an earlier one.',
    body: z.strictObject({
      email: z.string(must('an e-mail address')),
      role: roleField,
      workspace_id: idField('workspace').nullish().describe('Required, except for the role operator.'),
    }),
    example: { email: 'ada@example.com', role: 'member', workspace_id: 'ws_01KA8M0Q2V7TSCXZ9Y5D3E1F4G' },
    answer: invitationSchema.extend({ url: linkField, is_mailed: isMailed }),
    status: 201,
  },
  listInvitations: {
    summary: 'Lists pending invitations.',
    query: ofWorkspace,
    answer: listSchema(invitationSchema),
  },
  revokeInvitation: {
    summary: 'Withdraws an invitation: its link no longer works.',
    status: 204,
  },
} satisfies Definitions
