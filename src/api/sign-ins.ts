// Devices on which people are signed in, the codes with which a device asks for it, and the settings that devices get.

import { z } from 'zod'
import { roles } from '../kernel/roles.ts'
import { idField, listSchema, managedBy, must, pageFields, pageQuery, time } from './fields.ts'
import { type Definitions, emptyBody } from './operation.ts'

export const signInSchema = z.object({
  id: z.string(),
  person_id: z.string(),
  email: z.string(),
  workspace_id: z.string(),
  project_id: z.string(),
  key_id: z.string().describe("The person's key in the project: limits, requests and usage are under it."),
  client: z.string().describe('The program, such as `claude_code`; `unknown` if it did not say.'),
  device: z.string().describe('What the device calls itself.'),
  created_at: time,
  last_used_at: time.nullable().describe('Accurate to about a minute. null = never.'),
  idle_expires_at: time.describe('When the device has to sign in again if it is not used before.'),
  expires_at: time.describe('When the device has to sign in again in any case.'),
})

export const deviceGrantSchema = z.object({
  client: z.string().describe('The program, such as `claude_code`; `unknown` if it did not say.'),
  device: z.string().describe('What the device calls itself.'),
  address: z.string().nullable().describe('The network address at which it was started; null = unknown.'),
  created_at: time,
  expires_at: time,
})

const codeExpected = must('the code that the device shows, such as "WDJB-MJHT"')
const codeField = z.string(codeExpected).max(40, codeExpected).describe('As the device shows it.')
const code = z.strictObject({ code: codeField })
const example = { code: 'WDJB-MJHT' }

const roleExpected = must(`one of ${roles.join(', ')}`)
const groupField = z.string(must('a group')).min(1, must('a group')).max(400, must('a group'))
const settingsField = z
  .record(z.string(), z.unknown(), must('an object of settings'))
  .describe('Settings of Claude Code, as in its `managed-settings.json`.')

export const settingsRuleSchema = z.strictObject({
  role: z
    .enum(roles, roleExpected)
    .nullish()
    .describe('Only for people with this role in the workspace; absent or null = every role.'),
  group: groupField
    .nullish()
    .describe('Only for people whom the identity provider names in this group; absent or null = everyone.'),
  settings: settingsField,
})

const rulesField = z
  .array(settingsRuleSchema, must('a list of rules'))
  .max(100, must('a list of at most 100 rules'))
  .describe('In order: a later rule is merged over earlier ones. Objects are merged, anything else is replaced.')
const rulesExample = [
  { settings: { permissions: { deny: ['WebFetch'] } } },
  { role: 'admin', settings: { permissions: { deny: [] } } },
]

const rulesAnswer = z.object({ rules: rulesField, managed_by: managedBy })

export const signInOperations = {
  getManagedSettings: {
    summary: 'Reads the rules for the settings that Claude Code gets at `/managed/settings`.',
    answer: rulesAnswer,
  },
  putManagedSettings: {
    summary: 'Replaces all rules. Devices ask for their settings every hour.',
    body: z.strictObject({ rules: rulesField }),
    example: { rules: rulesExample },
    answer: rulesAnswer,
  },
  previewManagedSettings: {
    summary: 'Shows what someone with a role and groups gets: by the stored rules, or by those that are sent.',
    body: z.strictObject({
      role: z.enum(roles, roleExpected).nullish(),
      groups: z.array(groupField, must('a list of groups')).nullish(),
      member_id: idField('member')
        .nullish()
        .describe(
          "A person's role in a workspace, with the groups of their last sign-in; replaces `role` and `groups`.",
        ),
      rules: rulesField.nullish(),
    }),
    example: { role: 'member', groups: ['platform-team'] },
    answer: z.object({
      role: z.enum(roles).nullable(),
      groups: z.array(z.string()),
      settings: settingsField.nullable().describe('null = no rule matches, and the device gets a 404.'),
      checksum: z.string().nullable(),
    }),
  },
  openDeviceGrant: {
    summary: 'Shows which device waits with a code. From then on only this session can approve or deny it.',
    body: code,
    example,
    answer: deviceGrantSchema,
  },
  approveDeviceGrant: {
    summary: 'Signs a device in as the caller, in one project of a workspace. Only from a console session of a person.',
    body: z.strictObject({ code: codeField, project_id: idField('project') }),
    example: { ...example, project_id: 'prj_01KA8M0Q2V7TSCXZ9Y5D3E1F4G' },
    status: 204,
  },
  denyDeviceGrant: {
    summary: 'Refuses a device that waits for a sign-in. Only from a console session of a person.',
    body: code,
    example,
    status: 204,
  },
  listOwnSignIns: {
    summary: 'Lists the devices on which the caller is signed in, in all workspaces.',
    query: pageQuery,
    answer: listSchema(signInSchema),
  },
  endOwnSignIns: {
    summary: 'Signs the caller out on all devices, within a second on every replica.',
    body: emptyBody,
    answer: z.object({ ended: z.number() }),
  },
  listSignIns: {
    summary: 'Lists devices on which people are signed in: of a workspace, or all. Members see their own.',
    query: z.strictObject({
      ...pageFields,
      workspace_id: idField('workspace').optional().describe('Only those of this workspace.'),
    }),
    answer: listSchema(signInSchema),
  },
  endSignIn: {
    summary: 'Signs a device out, within a second on every replica.',
    status: 204,
  },
  endWorkspaceSignIns: {
    summary: 'Signs out all devices of everyone in a workspace, within a second on every replica.',
    body: emptyBody,
    answer: z.object({ ended: z.number() }),
  },
} satisfies Definitions
