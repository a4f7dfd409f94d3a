// What a file declares: workspaces, their projects and keys, with allowlists and limits. The file says everything about
// what it names; what it does not name is none of its business. It never holds a secret.

import { stringify } from 'yaml'
import { z } from 'zod'
import { readDocument } from '../../config/document.ts'
import { type ConfigFault, type ConfigPath, checkSchema, formatPath, type SchemaFault } from '../../config/fault.ts'
import { formatUsd, parseUsd } from '../../kernel/money.ts'

const count = z.int().min(1).optional()
const amount = z
  .union([z.string(), z.number()], { error: 'expected USD as a decimal string such as "5.00"' })
  .transform((value, context) => {
    const parsed = parseUsd(String(value))
    if (parsed !== undefined) return formatUsd(parsed)
    context.addIssue({ code: 'custom', message: 'expected USD as a decimal string such as "5.00"' })
    return z.NEVER
  })
  .optional()

const limits = z
  .strictObject({
    requests_per_minute: count,
    tokens_per_minute: count,
    concurrent_requests: count,
    spend_per_day: amount,
    spend_per_month: amount,
  })
  .nullish()

const name = z.string().min(1)
/** Only where several have one name. */
const id = z.string().min(1).optional()
const models = z.array(z.string().min(1)).nullish()

const keySchema = z.strictObject({
  name,
  id,
  models,
  limits,
  sources: z.array(z.string().min(1)).nullish(),
  expires_at: z.iso.datetime({ offset: true, error: 'expected a time such as "2027-01-31T00:00:00Z"' }).nullish(),
})
const projectSchema = z.strictObject({ name, id, models, limits, keys: z.array(keySchema).nullish() })
const workspaceSchema = z.strictObject({ name, id, limits, projects: z.array(projectSchema).nullish() })
export const declarationSchema = z.strictObject({ workspaces: z.array(workspaceSchema).nullish() })

export type Declaration = z.output<typeof declarationSchema>
export type DeclaredWorkspace = z.output<typeof workspaceSchema>
export type DeclaredProject = z.output<typeof projectSchema>
export type DeclaredKey = z.output<typeof keySchema>

export function readDeclaration(
  fileName: string,
  text: string,
): Declaration | { readonly faults: readonly ConfigFault[] } {
  const document = readDocument(fileName, text)
  if ('faults' in document) return document
  const checked = checkSchema(declarationSchema, document.value ?? {})
  const found = 'faults' in checked ? checked.faults : repeatedNames(checked.value)
  if ('value' in checked && found.length === 0) return checked.value
  return {
    faults: found.map(({ path, at, message }) => ({
      where: document.place(document.offset(path, at)),
      field: formatPath(path),
      message,
    })),
  }
}

interface Named {
  readonly name: string
  readonly id?: string | undefined
}

function repeatedNames({ workspaces }: Declaration): SchemaFault[] {
  const inList = (list: readonly Named[], path: ConfigPath): SchemaFault[] =>
    list.flatMap(({ name: own, id: ownId }, at) => {
      const isRepeated = ownId === undefined && list.findIndex((each) => each.name === own) < at
      const message = 'this name stands twice; give both an id'
      return isRepeated ? [{ path: [...path, at, 'name'], at: 'value' as const, message }] : []
    })
  return [
    ...inList(workspaces ?? [], ['workspaces']),
    ...(workspaces ?? []).flatMap(({ projects }, w) => [
      ...inList(projects ?? [], ['workspaces', w, 'projects']),
      ...(projects ?? []).flatMap(({ keys }, p) => inList(keys ?? [], ['workspaces', w, 'projects', p, 'keys'])),
    ]),
  ]
}

/** As `readDeclaration` takes it. */
export function renderDeclaration(declaration: Declaration): string {
  const head =
    '# Made by `tollgate config export`; taken by `tollgate config plan FILE` and `apply FILE`. Holds no secret.\n'
  return head + stringify(declaration, { lineWidth: 120, aliasDuplicateObjects: false })
}
