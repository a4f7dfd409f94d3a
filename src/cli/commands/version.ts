// `tollgate version`: which version this is, and whether downloaded files are those of a release. The release is only as
// true as the key, which therefore has to come from elsewhere than the files.

import { createPublicKey, type KeyObject, verify } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import manifest from '../../../package.json' with { type: 'json' }
import { type CommandDefinition, printResult } from '../command.ts'
import { exitCodes, Refusal, usageRefusal } from '../refusal.ts'
import {
  hashOf,
  keyId,
  openEnvelope,
  provenanceName,
  readSums,
  type Statement,
  type Sums,
  signatureName,
  sumsName,
} from '../release.ts'
import { renderTable } from '../values.ts'

interface VerifiedRelease {
  readonly statement: Statement
  readonly files: readonly { readonly name: string; readonly here: boolean }[]
}

export const versionCommand: CommandDefinition = {
  words: ['version'],
  isLocal: true,
  summary: 'prints the version, or verifies the files of a release',
  details: `FOLDER has SHA256SUMS, its signature and the provenance beside the files that you downloaded; not all of them need be
there. The key is in PEM. Take it from the repository and not from where the files come from.`,
  options: {
    verify: { value: 'FOLDER', help: 'verify signatures, checksums and provenance of the files in it' },
    key: { value: 'FILE', help: 'the public key of the releases' },
  },
  examples: ['tollgate version', 'tollgate version --verify downloads --key release-key.pem'],
  async run(context) {
    const folder = context.text('verify')
    const keyFile = context.text('key')
    if (folder === undefined) {
      if (keyFile !== undefined) throw usageRefusal('--key needs --verify FOLDER.')
      return printResult(context, { version: manifest.version }, () => `${manifest.version}\n`)
    }
    if (keyFile === undefined) throw usageRefusal('--verify needs --key FILE, the public key of the releases.')
    const key = readKey(keyFile)
    const { statement, files } = await verifyRelease(folder, key)
    const { version, commit } = statement.predicate.buildDefinition.externalParameters
    const builder = statement.predicate.runDetails.builder.id
    const result = { ok: true, version, commit, builder, key: keyId(key), files }
    printResult(context, result, () => {
      const table = renderTable(
        [
          ['FILE', ({ name }) => name],
          ['STATE', ({ here }) => (here ? 'unchanged' : 'not in this folder')],
        ],
        files,
        context.terminal,
      )
      return `Tollgate ${version}, built from commit ${commit} by ${builder}.\nSigned by the key ${keyId(key)}.\n\n${table}`
    })
  },
}

function readKey(file: string): KeyObject {
  const text = readText(file)
  try {
    const key = createPublicKey(text)
    if (key.asymmetricKeyType === 'ed25519') return key
  } catch {
    // Said below.
  }
  throw new Refusal(exitCodes.failed, `${file} is not an Ed25519 public key in PEM.`)
}

function readText(file: string): string {
  if (!existsSync(file)) throw new Refusal(exitCodes.failed, `there is no file ${file}.`)
  return readFileSync(file, 'utf8')
}

/** Throws a Refusal that says which file is not as it was released. */
async function verifyRelease(folder: string, key: KeyObject): Promise<VerifiedRelease> {
  const text = readText(join(folder, sumsName))
  const signatureFile = join(folder, signatureName)
  readText(signatureFile)
  if (!verify(null, Buffer.from(text), key, readFileSync(signatureFile)))
    throw refused(`${sumsName} was not signed with this key, or was changed afterwards.`)
  const sums = readSums(text)
  if (sums === undefined) throw refused(`${sumsName} is signed, but not in the format of sha256sum.`)
  const files: { name: string; here: boolean }[] = []
  for (const [name, hash] of sums) {
    const file = join(folder, name)
    const here = existsSync(file)
    if (here && (await hashOf(file)) !== hash) throw refused(`${name} is not the file that was released.`)
    files.push({ name, here })
  }
  if (!files.some(({ here }) => here))
    throw new Refusal(exitCodes.failed, `${folder} has no file that ${sumsName} names.`)
  return { statement: readProvenance(folder, sums, key), files }
}

/** One statement for all files of the release, about the same bytes as the checksums. */
function readProvenance(folder: string, sums: Sums, key: KeyObject): Statement {
  const statement = openEnvelope(readText(join(folder, provenanceName)), key)
  if (statement === undefined)
    throw refused(`${provenanceName} was not signed with this key, or was changed afterwards.`)
  const stated = new Map(statement.subject.map((subject) => [subject.name, subject.digest.sha256]))
  const isSame = stated.size === sums.size && [...sums].every(([each, hash]) => stated.get(each) === hash)
  if (!isSame) throw refused(`${provenanceName} is about other files than ${sumsName}.`)
  return statement
}

function refused(message: string): Refusal {
  return new Refusal(exitCodes.failed, `${message} Use none of these files, and download them again.`)
}
