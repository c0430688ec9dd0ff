//! openssl: inspecting certificates is read-only; connecting and using keys is not.

use crate::{
    arg::Arg,
    commands::{
        hosts,
        options::ParsedArguments,
        spec::{CommandSpec, KnownCommand, OperandKind, OptionStyle, UnsafeOption, writes},
        verbs::{self, VerbProgram, change, unsure},
    },
    effect::{CommandFinding, Effect},
};

pub(in crate::commands) const ENTRIES: &[KnownCommand] = &[KnownCommand::Own("openssl", openssl)];

const OUT: &[UnsafeOption] = &[writes("-out> -writerand>", "writes a file")];

const OPENSSL: VerbProgram = VerbProgram {
    before: CommandSpec::prints("openssl", "").style(OptionStyle::Posix).strict(),
    verbs: &[
        read_only_spec("version", "-a -b -c -d -e -f -m -o -p -r -v"),
        read_only_spec("help list ciphers", "-v -V -s -help -commands -digest-commands -cipher-commands \
              -public-key-algorithms -1 -tls1_2 -tls1_3 -ssl3 -stdname -psk -srp -convert:"),
        read_only_spec(
            "x509 req crl",
            "-in< -inform: -text -noout -subject -issuer -dates -startdate -enddate -serial \
             -fingerprint -hash -subject_hash -issuer_hash -subject_hash_old -issuer_hash_old -pubkey \
             -modulus -email -ocspid -ocsp_uri -purpose -ext: -nameopt: -certopt: -reqopt: -sha1 -sha256 \
             -sha384 -sha512 -md5 -checkend: -checkhost: -checkemail: -checkip: -alias -verify -lastupdate \
             -nextupdate -crlnumber -help",
        ),
        read_only_spec(
            "dgst sha1 sha256 sha384 sha512 md5 sha224",
            "-sha1 -sha224 -sha256 -sha384 -sha512 -sha3-256 -sha3-512 -md5 -blake2b512 -blake2s256 -r \
             -hex -c -binary -list -help",
        )
        .operands(OperandKind::Files),
        read_only_spec("asn1parse", "-in< -inform: -i -dump -strparse: -offset: -length: -noout -help"),
        read_only_spec("verify", "-CAfile< -CApath: -untrusted< -purpose: -verbose -show_chain -partial_chain -help")
            .operands(OperandKind::Files),
        read_only_spec("rand", "-hex -base64 -help"),
        read_only_spec("errstr prime", "-hex -checks: -help"),
        CommandSpec::unsure("s_client s_time", "it contacts a host")
            .style(OptionStyle::Words)
            .with_evaluator(connect),
    ],
    others: &[
        unsure("s_server ocsp tsget", "it talks to a host").contacting(),
        unsure(
            "rsa dsa ec pkey pkcs8 pkcs12 pkeyutl rsautl enc base64 passwd cms smime speed engine",
            "it works with keys or starts engines",
        ),
        change("genrsa gendsa genpkey ecparam dhparam dsaparam ca rehash ts spkac", "it makes keys or certificates"),
    ],
    unknown: "what this verb does is not known",
};

const fn read_only_spec(names: &'static str, options: &'static str) -> CommandSpec {
    CommandSpec::prints(names, options)
        .refusing(OUT)
        .style(OptionStyle::Words)
        .strict()
}

fn openssl(argv: &[Arg]) -> CommandFinding {
    verbs::judge(&OPENSSL, argv)
}

fn connect(parsed: &ParsedArguments<'_>) -> CommandFinding {
    let mut finding = CommandFinding::unknown("it contacts a host");
    let behind = parsed.argv.windows(2);
    let named = behind.filter(|pair| {
        ["-connect", "-host", "-proxy"]
            .iter()
            .any(|name| pair[0].is(name))
    });
    finding
        .effects
        .extend(named.flat_map(|pair| hosts::contacts(&pair[1], hosts::authority_host)));
    if finding.effects.is_empty() {
        finding.effects.push(Effect::Net(None));
    }
    finding
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::testing::*;

    #[test]
    fn certificates_are_looked_at() {
        assert_read_only(&[
            "openssl version",
            "openssl version -a",
            "openssl x509 -in c.pem -text -noout",
            "openssl x509 -in c.pem -noout -subject -dates",
            "openssl x509 -checkend 86400 -in c.pem",
            "openssl req -in r.csr -noout -text",
            "openssl dgst -sha256 f",
            "openssl ciphers -v",
            "openssl rand -hex 16",
            "openssl verify -CAfile ca.pem c.pem",
        ]);
        assert_not_read_only(&[
            "openssl s_client -connect example.com:443",
            "openssl x509 -in c.pem -out d.pem",
            "openssl x509 -req -in r -signkey k",
            "openssl genrsa -out k",
            "openssl rsa -in k -text",
            "openssl req -new -x509",
            "openssl enc -d -in f",
            "openssl dgst -sign k f",
            "openssl rand -out f 16",
            "openssl dgst -engine x f",
            "openssl version $x",
        ]);
        assert_eq!(
            effects("openssl s_client -connect Example.com:443"),
            ["net example.com"]
        );
        assert_eq!(
            effects("openssl x509 -in c -out d"),
            ["read c", "OptionWrite d"]
        );
        OPENSSL.assert_well_formed();
    }
}
