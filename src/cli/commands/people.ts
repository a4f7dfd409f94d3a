// `tollgate people`, `tollgate invitations`, `tollgate sessions`, `tollgate devices` and `tollgate tokens`. A link is printed once, alone on the standard output.

import { alertKinds } from '../../kernel/alert.ts'
import { roles } from '../../kernel/roles.ts'
import type { CommandDefinition } from '../command.ts'
import {
  answerCommand,
  idempotencyOption,
  listCommand,
  workspaceFilter,
  workspaceOption,
} from '../operation-command.ts'
import { usageRefusal } from '../refusal.ts'
import { cleanText, shownTime } from '../values.ts'

const memberId = { name: 'ID', prefix: 'mem_', parameter: 'id' } as const
const inWorkspace = workspaceFilter('only those of this workspace')
const listing = 'tollgate people list'

export const peopleCommands: readonly CommandDefinition[] = [
  answerCommand({
    words: ['account', 'alerts'],
    summary: 'chooses the alerts that you get by e-mail',
    details: `Kinds: ${alertKinds.join(', ')}. By role, admins get the alerts of their workspace and operators those of the
installation. Needs a personal token, because the installation has no address.`,
    examples: ['tollgate account alerts --kinds balance.low,limit.reached', 'tollgate account alerts --none'],
    operation: 'updateMe',
    options: {
      kinds: { value: 'LIST', isRepeatable: true, help: 'only these kinds, separated by commas', field: 'alert_kinds' },
      none: { help: 'no e-mail', field: 'alert_kinds', set: [] },
      'by-rules': { help: 'as the alert rules say', field: 'alert_kinds', set: null },
    },
    check({ isSet }) {
      if ([isSet('kinds'), isSet('none'), isSet('by-rules')].filter(Boolean).length === 1) return
      throw usageRefusal('give one of --kinds, --none and --by-rules.', 'tollgate account alerts --help')
    },
    text: ({ alert_kinds: kinds }) =>
      kinds === null
        ? 'You get the alerts that alert rules send you.\n'
        : `You get ${kinds.join(', ') || 'no alerts'} by e-mail.\n`,
  }),
  listCommand({
    words: ['people', 'list'],
    isDefault: true,
    summary: 'lists people with their roles',
    examples: ['tollgate people', 'tollgate people list --workspace ws_…'],
    operation: 'listMembers',
    options: { workspace: inWorkspace },
    columns: [
      'id',
      ['ADDRESS', ({ email }) => email],
      'name',
      'role',
      ['WORKSPACE', ({ workspace_id }) => workspace_id ?? 'all'],
      ['SINCE (UTC)', ({ created_at }) => shownTime(created_at)],
    ],
  }),
  answerCommand({
    words: ['people', 'invite'],
    summary: 'invites an address, and prints the link to send',
    details: `The link works once, for 7 days, and only for this address. It replaces an earlier one. Without --workspace the role
must be operator.`,
    examples: ['tollgate people invite ada@example.com --role admin --workspace ws_…'],
    operation: 'createInvitation',
    arguments: [{ name: 'ADDRESS', field: 'email' }],
    options: {
      role: { value: 'ROLE', help: roles.join(', '), field: 'role', isRequired: true },
      workspace: workspaceFilter('the workspace'),
      'idempotency-key': idempotencyOption,
    },
    text: ({ url }) => `${url}\n`,
    note({ email, expires_at, is_mailed }) {
      const done = is_mailed ? 'This link was also e-mailed to' : 'Send this link to'
      return `${done} ${cleanText(email)}. It works once, until ${shownTime(expires_at)} UTC.\n`
    },
  }),
  answerCommand({
    words: ['people', 'role'],
    summary: 'changes the role of a person, from their next request on',
    examples: ['tollgate people role mem_… viewer'],
    operation: 'updateMember',
    arguments: [memberId, { name: 'ROLE', field: 'role' }],
    listedBy: listing,
    text: ({ email, role }) => `${cleanText(email)} has the role ${role} now.\n`,
  }),
  answerCommand({
    words: ['people', 'remove'],
    summary: 'removes a person: sessions, tokens and own keys end within a second',
    examples: ['tollgate people remove mem_…'],
    operation: 'removeMember',
    arguments: [memberId],
    confirm: (_context, { id }) => `Remove ${id}? Their sessions, tokens and own keys end.`,
    listedBy: listing,
    text: (_answer, _context, { id }) => `${id} is removed.\n`,
    json: (_answer, { id }) => ({ id, removed: true }),
  }),
  answerCommand({
    words: ['people', 'reset-password'],
    summary: 'prints a link with which a person sets a new password within a day',
    examples: ['tollgate people reset-password mem_…'],
    operation: 'createResetLink',
    arguments: [memberId],
    listedBy: listing,
    text: ({ url }) => `${url}\n`,
  }),
  answerCommand({
    words: ['console'],
    summary: 'prints a link that signs a browser in to the console as the operator, once and within 15 minutes',
    examples: ['tollgate console', 'xdg-open "$(tollgate console)"'],
    operation: 'createSignInLink',
    text: ({ path, url }, { api }) => `${url ?? api.url + path}\n`,
  }),
  listCommand({
    words: ['invitations', 'list'],
    isDefault: true,
    summary: 'lists pending invitations',
    examples: ['tollgate invitations'],
    operation: 'listInvitations',
    options: { workspace: inWorkspace },
    columns: [
      'id',
      ['ADDRESS', ({ email }) => email],
      'role',
      ['WORKSPACE', ({ workspace_id }) => workspace_id ?? 'all'],
      'expires_at',
    ],
  }),
  answerCommand({
    words: ['invitations', 'withdraw'],
    summary: 'withdraws an invitation: its link no longer works',
    examples: ['tollgate invitations withdraw inv_…'],
    operation: 'revokeInvitation',
    arguments: [{ name: 'ID', prefix: 'inv_', parameter: 'id' }],
    listedBy: 'tollgate invitations list',
    text: (_answer, _context, { id }) => `${id} is withdrawn.\n`,
    json: (_answer, { id }) => ({ id, withdrawn: true }),
  }),
  listCommand({
    words: ['sessions', 'list'],
    isDefault: true,
    summary: 'lists your sessions in the console, latest sign-in first',
    details: 'With the management token: those that were opened with it or with a link of `tollgate console`.',
    examples: ['tollgate sessions'],
    operation: 'listSessions',
    columns: [
      'id',
      ['BROWSER', ({ client }) => client],
      ['SIGNED IN (UTC)', ({ opened_at }) => shownTime(opened_at)],
      ['LAST USED (UTC)', ({ used_at }) => shownTime(used_at)],
    ],
  }),
  answerCommand({
    words: ['sessions', 'end'],
    summary: 'signs one browser out of the console',
    examples: ['tollgate sessions end ses_…'],
    operation: 'endSession',
    arguments: [{ name: 'ID', prefix: 'ses_', parameter: 'id' }],
    listedBy: 'tollgate sessions list',
    text: (_answer, _context, { id }) => `${id} is signed out.\n`,
    json: (_answer, { id }) => ({ id, ended: true }),
  }),
  listCommand({
    words: ['devices', 'list'],
    isDefault: true,
    summary: 'lists devices on which people are signed in, oldest sign-in first',
    details: 'Members see their own.',
    examples: ['tollgate devices', 'tollgate devices list --workspace acme'],
    operation: 'listSignIns',
    options: { workspace: inWorkspace },
    columns: [
      'id',
      'email',
      'client',
      'device',
      ['SIGNED IN (UTC)', ({ created_at }) => shownTime(created_at)],
      ['LAST USED (UTC)', ({ last_used_at }) => (last_used_at === null ? 'never' : shownTime(last_used_at))],
    ],
  }),
  answerCommand({
    words: ['devices', 'end'],
    summary: 'signs a device out within a second',
    examples: ['tollgate devices end sgn_…'],
    operation: 'endSignIn',
    arguments: [{ name: 'ID', prefix: 'sgn_', parameter: 'id' }],
    listedBy: 'tollgate devices list',
    text: (_answer, _context, { id }) => `${id} is signed out.\n`,
    json: (_answer, { id }) => ({ id, ended: true }),
  }),
  answerCommand({
    words: ['devices', 'end-all'],
    summary: 'signs out all devices of everyone in a workspace within a second',
    examples: ['tollgate devices end-all --workspace acme'],
    operation: 'endWorkspaceSignIns',
    options: { workspace: { ...workspaceOption, parameter: 'id' } },
    confirm: (_context, { id }) => `Sign out all devices of everyone in ${id}?`,
    text: ({ ended }) => `${ended === 1 ? '1 device is' : `${ended} devices are`} signed out.\n`,
  }),
  listCommand({
    words: ['tokens', 'list'],
    isDefault: true,
    summary: 'lists your own personal management tokens; the console creates them',
    examples: ['tollgate tokens'],
    operation: 'listTokens',
    columns: [
      'id',
      'name',
      ['TOKEN', ({ last4 }) => `…${last4}`],
      'role',
      ['WORKSPACE', ({ workspace_id }) => workspace_id ?? 'all'],
      'expires_at',
    ],
  }),
  answerCommand({
    words: ['tokens', 'revoke'],
    summary: 'revokes a personal management token',
    examples: ['tollgate tokens revoke tok_…'],
    operation: 'revokeToken',
    arguments: [{ name: 'ID', prefix: 'tok_', parameter: 'id' }],
    listedBy: 'tollgate tokens list',
    text: (_answer, _context, { id }) => `${id} is revoked.\n`,
    json: (_answer, { id }) => ({ id, revoked: true }),
  }),
]
