// `tollgate groups`: named sets of people and keys of a workspace, which spend limits can name.

import type { AnswerOf } from '../../api/client.ts'
import type { CommandDefinition } from '../command.ts'
import { findGroup } from '../lookup.ts'
import { answerCommand, idempotencyOption, listCommand, workspaceOption } from '../operation-command.ts'
import { usageRefusal } from '../refusal.ts'
import { cleanText, shownTime } from '../values.ts'

type Group = AnswerOf<'getGroup'>

const group = { name: 'GROUP', find: 'group', parameter: 'id' } as const
const workspace = { ...workspaceOption, parameter: 'id' } as const
const workspaceOfGroup = { ...workspaceOption, help: 'the workspace in which the group is looked for by name' } as const
const membersOption = {
  value: 'LIST',
  isRepeatable: true,
  help: 'people by address and keys by id, separated by commas',
  field: 'members',
} as const
const listing = 'tollgate groups list'

function groupText({ id, name, members }: Group, done?: string): string {
  const who = members.map((member) => `  ${member.id}  ${cleanText(member.name)}\n`).join('')
  return `${cleanText(name)} (${id})${done ? ` ${done}` : ''}\n${who || '  no members\n'}`
}

/** People and keys that are given, beside or without those that are in it. */
function changedMembers(words: 'add' | 'remove'): CommandDefinition {
  const isAdded = words === 'add'
  return answerCommand({
    words: ['groups', words],
    summary: isAdded
      ? 'adds people and keys to a group; what they spent before does not count in it'
      : 'takes people and keys out of a group; what they spent stays counted in it',
    examples: [`tollgate groups ${words} design --members ada@example.com,key_…`],
    operation: 'updateGroup',
    arguments: [group],
    options: { workspace: workspaceOfGroup, members: { value: 'LIST', isRepeatable: true, help: membersOption.help } },
    async body({ api, first, text, texts }) {
      const given = texts('members') ?? []
      if (given.length === 0) throw usageRefusal('--members is missing.')
      const { members } = await api.call('getGroup', { id: await findGroup(api, first, text('workspace')) })
      const isGiven = ({ id, name }: Group['members'][number]) =>
        given.some((each) => each === id || each.toLowerCase() === name.toLowerCase())
      const stay = members.filter((member) => isAdded || !isGiven(member)).map(({ id }) => id)
      return { members: isAdded ? [...stay, ...given] : stay }
    },
    listedBy: listing,
    text: (answer) => groupText(answer, 'changed'),
  })
}

export const groupCommands: readonly CommandDefinition[] = [
  listCommand({
    words: ['groups', 'list'],
    isDefault: true,
    summary: 'lists the groups of a workspace',
    examples: ['tollgate groups', 'tollgate groups list --workspace ws_…'],
    operation: 'listGroups',
    options: { workspace },
    columns: [
      'id',
      'name',
      ['MEMBERS', ({ members }) => members.length, 'right'],
      ['SINCE (UTC)', ({ created_at }) => shownTime(created_at)],
    ],
  }),
  answerCommand({
    words: ['groups', 'create'],
    summary: 'creates a group of people and keys, which spend limits can name',
    details:
      'A person counts with all their keys and sign-ins. A person or key may be in several groups and counts in each.',
    examples: [
      'tollgate groups create design --members ada@example.com,bob@example.com',
      "tollgate limits put prj_… --spend-limit 'group:design month 500'",
    ],
    operation: 'createGroup',
    arguments: [{ name: 'NAME', field: 'name' }],
    options: { workspace, members: membersOption, 'idempotency-key': idempotencyOption },
    text: (answer) => groupText(answer, 'created'),
  }),
  answerCommand({
    words: ['groups', 'show'],
    summary: 'shows a group and who is in it',
    examples: ['tollgate groups show design'],
    operation: 'getGroup',
    arguments: [group],
    options: { workspace: workspaceOfGroup },
    listedBy: listing,
    text: (answer) => groupText(answer),
  }),
  changedMembers('add'),
  changedMembers('remove'),
  answerCommand({
    words: ['groups', 'rename'],
    summary: 'renames a group; limits follow it',
    examples: ['tollgate groups rename design studio'],
    operation: 'updateGroup',
    arguments: [group, { name: 'NAME', field: 'name' }],
    options: { workspace: workspaceOfGroup },
    listedBy: listing,
    text: (answer) => groupText(answer, 'renamed'),
  }),
  answerCommand({
    words: ['groups', 'delete'],
    summary: 'deletes a group that no spend limit names',
    examples: ['tollgate groups delete design'],
    operation: 'deleteGroup',
    arguments: [group],
    options: { workspace: workspaceOfGroup },
    confirm: (_context, { id }) => `Delete ${id}?`,
    listedBy: listing,
    text: (_answer, _context, { id }) => `${id} is deleted.\n`,
    json: (_answer, { id }) => ({ id, deleted: true }),
  }),
]
