// Things as the text of the file that `tollgate config apply` takes. JSON is YAML too, so that no name, however odd, can
// leave the quotes it is put into.

import type { CatalogEntry } from '../../../catalog/entry.ts'
import type { Key, Limits, Project, Workspace } from './things.ts'

/** A project with its keys in its workspace. */
export function projectText(workspace: Workspace, project: Project, keys: readonly Key[]): string {
  const lines = [
    'workspaces:',
    `  - name: ${quoted(workspace.name)}`,
    ...limitsLine(workspace.limits, '    '),
    '    projects:',
    `      - name: ${quoted(project.name)}`,
    ...(project.models === null ? [] : [`        models: ${quoted(project.models)}`]),
    ...limitsLine(project.limits, '        '),
    ...(keys.length === 0 ? [] : ['        keys:', ...keys.map((key) => `          - ${quoted(keyMembers(key))}`)]),
  ]
  return `${lines.join('\n')}\n`
}

/** A model's entry in tollgate.yaml. */
export function modelText({ id, price, routes }: CatalogEntry): string {
  const shownRoutes = routes.map(({ provider, upstream_model: model, priority, weight }) => {
    const members = { provider, model, ...(priority !== 1 && { priority }), ...(weight !== 1 && { weight }) }
    return `      - ${quoted(members)}`
  })
  const priced = price === null ? [] : [`    price: ${quoted(price)}`]
  return `${['models:', `  - id: ${quoted(id)}`, ...priced, '    routes:', ...shownRoutes].join('\n')}\n`
}

function keyMembers({ name, models, limits, sources, expires_at }: Key) {
  return {
    name,
    ...(models !== null && { models }),
    ...(Object.keys(limits).length > 0 && { limits }),
    ...(sources !== null && { sources }),
    ...(expires_at !== null && { expires_at }),
  }
}

function limitsLine(limits: Limits, indent: string): readonly string[] {
  return Object.keys(limits).length === 0 ? [] : [`${indent}limits: ${quoted(limits)}`]
}

function quoted(value: unknown): string {
  return JSON.stringify(value)
}
