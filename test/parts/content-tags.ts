// Tags of `encrypted_content`, as a gateway issues them to its first workspace.

import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { ContentTags } from '../../src/dialects/canonical/translation.ts'
import { Secret } from '../../src/kernel/secret.ts'
import { createContentTags } from '../../src/pipeline/session.ts'
import { deriveSubkey, parseMasterSecret } from '../../src/tenancy/secrets.ts'
import type { Gateway } from './gateway.ts'

/** For content that is written before there is a gateway. */
export const noTags: ContentTags = { tag: () => 'untagged', isValid: (_, tag) => tag === 'untagged' }

export async function contentTagsOf({ url, dataFolder }: Gateway): Promise<ContentTags> {
  const token = readFileSync(join(dataFolder, 'admin-token'), 'utf8').trim()
  const secret = parseMasterSecret(new Secret(readFileSync(join(dataFolder, 'secret'), 'utf8').trim()), 'test')
  const response = await fetch(`${url}/api/workspaces`, { headers: { authorization: `Bearer ${token}` } })
  const { data } = (await response.json()) as { data: readonly { id: string }[] }
  const current = deriveSubkey(secret, 'encrypted-content')
  return createContentTags({ current, previous: undefined })(data[0]?.id ?? '')
}

/** A body whose untagged content is as if this gateway had issued it. */
export function tagged(body: string, tags: ContentTags): string {
  return body.replaceAll(
    /(tgr1\.[se]\.)untagged\.([^"]*)/g,
    (_, form: string, content: string) => `${form}${tags.tag(form + content)}.${content}`,
  )
}
