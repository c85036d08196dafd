"""What a storage said no with, in the client's words.

Spark and Hadoop bring the errors of a storage as the text of a Java exception, wrapped in others
once or more; its class's name is in there, and it alone tells what to do next.
"""

import re

from tidegate.spark.errors import StorageError, UnsupportedSession
from tidegate.spark.storage.locations import scheme_of

_NO_FILE_SYSTEM = re.compile(
    r"ClassNotFoundException: Class org\.apache\.hadoop\.fs\.\S*FileSystem not found"
    r"|ClassNotFoundException: Class com\.google\.cloud\.hadoop\.fs\.\S+ not found"
    r"|No FileSystem for scheme"
)
_JARS = {
    "s3a": "org.apache.hadoop:hadoop-aws:{hadoop}",
    "abfss": "org.apache.hadoop:hadoop-azure:{hadoop}",
    "gs": "org.apache.hadoop:hadoop-gcp:{hadoop}",
}
_CASES = (
    (
        re.compile(
            r"NoAuthWithAWSException|NoAwsCredentialsException|CredentialInitializationException"
            r"|Unable to load credentials"
        ),
        "has no credentials for it",
        "give the Spark session credentials (spark.hadoop.fs.s3a.access.key and secret.key, or a "
        "provider in spark.hadoop.fs.s3a.aws.credentials.provider); the service's are its own",
    ),
    (
        re.compile(
            r"AccessDeniedException|AWSBadRequestException|AWS Error ACCESS_DENIED"
            r"|InvalidAccessKeyId|SignatureDoesNotMatch"
            r"|HTTP status 40[13]|HTTP response code 40[13]|Status Code: 40[13]"
        ),
        "is not allowed to use it",
        "give the Spark session credentials that may list, read and write the table's location",
    ),
    (
        re.compile(r"UnknownStoreException|NoSuchBucket|NO_SUCH_BUCKET"),
        "finds no such bucket",
        "check the table's location and the endpoint that the Spark session is configured with",
    ),
    (
        re.compile(
            r"ConnectException|ConnectTimeoutException|UnknownHostException"
            r"|ApiCallTimeoutException|SdkClientException|NETWORK_CONNECTION"
        ),
        "cannot reach it",
        "check the endpoint that the Spark session is configured with (for S3, "
        "spark.hadoop.fs.s3a.endpoint), and that it answers there",
    ),
)


def missing_file_system(text: str, *, url: str, hadoop: str) -> UnsupportedSession | None:
    """The refusal where the text says that the session has no file system for the URL's scheme;
    `hadoop` is the version of the session's Hadoop."""
    if _NO_FILE_SYSTEM.search(text) is None:
        return None
    scheme = scheme_of(url)
    jar = _JARS.get(scheme)
    hint = (
        f"add {jar.format(hadoop=hadoop)} to spark.jars.packages (the version is that of this "
        "Spark's Hadoop) and start a new session"
        if jar is not None
        else f"add a Hadoop file system for {scheme}:// to the session's jars"
    )
    return UnsupportedSession(
        f"the table lies at {url}, and this Spark session has no file system for {scheme}://",
        hint=hint,
    )


def storage_refusal(text: str, *, url: str) -> StorageError | None:
    """What the text of an exception says that a storage refused; None where it says nothing of
    the kind."""
    for pattern, what, hint in _CASES:
        if (found := pattern.search(text)) is not None:
            line = next(line for line in text.splitlines() if found[0].split("\n")[0] in line)
            return StorageError(
                f"the table lies at {url}, and Spark {what}: {line.strip()[:500]}", hint=hint
            )
    return None
